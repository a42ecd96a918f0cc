from __future__ import annotations

from ltocf.data.sources.published import PUBLISHED, portion_of
from ltocf.pictures.charts import Chart, Series
from ltocf.runs.comparison import Difference
from ltocf.studies.report import TABLES, Page, latex_table, verdict


def sure(low, high):
    return Difference("recall@20", (low + high) / 2, low, high, 0.01, 10, 1)


def test_an_arm_is_above_another_only_if_it_is_by_users_and_by_seeds():
    clear = verdict("new", [0.20, 0.21], "old", [0.10, 0.11], sure(0.09, 0.11))
    assert "is **above** old" in clear and "+0.1000" in clear and "+0.0900 to +0.1100" in clear
    assert "is **below** new" in verdict("old", [0.1, 0.11], "new", [0.2, 0.21], sure(-0.11, -0.09))


def test_neither_users_nor_seeds_alone_tell_two_apart():
    seeds_differ = verdict("new", [0.10, 0.14], "old", [0.10, 0.11], sure(0.01, 0.02))
    users_differ = verdict("new", [0.20, 0.21], "old", [0.10, 0.11], sure(-0.01, 0.2))
    assert "not told apart from" in seeds_differ and "not told apart from" in users_differ


def test_one_seed_proves_nothing():
    assert "not told apart from" in verdict("new", [0.2], "old", [0.1, 0.1], sure(0.09, 0.11))


def test_a_table_in_latex_has_no_links_and_no_raw_percent_sign():
    text = latex_table(["model", "share"], [["[LT-OCF](configs/x.toml)", "**50 %** ± 1"]])
    assert r"LT-OCF & \textbf{50 \%} $\pm$ 1 \\" in text and "configs" not in text


def test_on_a_portion_of_a_published_set_every_table_and_figure_says_so(tmp_path):
    whole = PUBLISHED["amazon-book"]
    counts = {"users": whole.users, "valid": 0, "train": 2_104_844, "test": whole.test}
    portion = portion_of(counts)
    assert str(portion) == "88 % of the training pairs" and portion.of == "amazon-book"
    page = Page(tmp_path / "table", "all models", "Table 3", "amazon-book-88", portion)
    page.table(["model", "Recall@20"], [["LT-OCF", "0.04"]])
    page.figures(Chart("recall", "Test Recall@20", "T", "y", [Series("ours", [1, 2], [[1, 2]])]))
    page.write()
    said = "88 % of the training pairs"
    assert f"*On {said} of amazon-book.*" in (tmp_path / "table" / "page.txt").read_text()
    assert said.replace("%", r"\%") in (tmp_path / "table" / TABLES).read_text()
    assert f"<!-- {said} -->" in (tmp_path / "table" / "recall.svg").read_text()


def test_a_portion_has_all_test_pairs_and_fewer_training_pairs():
    whole = PUBLISHED["gowalla"]
    counts = {"users": whole.users, "valid": 0, "train": whole.train, "test": whole.test}
    assert portion_of(counts) is None
    some = counts | {"train": 700_000, "test": whole.test - 7}
    assert portion_of(some) is None and portion_of(some, dropped=7).share == 700_000 / whole.train

"""Everybody's list in one file."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap
from ltocf.errors import ConfigError, DataError
from ltocf.ranking.quantised import QuantisedItems
from ltocf.recommend import bulk, lists
from ltocf.recommend.approximate import ApproximateLists
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.lists import ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules


@pytest.fixture(scope="module")
def town(hamlet) -> Recommender:
    return Recommender("ltocf", epochs=1, dim=8, negatives=4).fit(hamlet)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(bulk, "PART_USERS", 50)


def everybody(town: Recommender) -> list[str]:
    return town.fitted.seen.user_ids.ids.to_list()


def test_the_file_holds_what_recommend_answers(town, tmp_path):
    seen = []
    report = recommend_all(
        town, tmp_path / "recs.parquet", 5, progress=lambda *done: seen.append(done)
    )
    assert_frame_equal(
        pl.read_parquet(tmp_path / "recs.parquet"), town.recommend(everybody(town), 5)
    )
    assert (report.users, report.rows, report.resumed) == (120, 600, 0)
    assert seen == [("recommending", done, 120) for done in (50, 100, 120)]
    assert [path.name for path in tmp_path.iterdir()] == ["recs.parquet"]


def test_a_csv_holds_the_same(town, tmp_path):
    recommend_all(town, tmp_path / "recs.csv", 2, exclude=[], keep_seen=True)
    read = pl.read_csv(tmp_path / "recs.csv")
    assert (
        read["item"].to_list()
        == town.recommend(everybody(town), 2, keep_seen=True)["item"].to_list()
    )


def interrupt_after_first_part(town: Recommender, output, **options: object) -> None:
    def stop(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recommend_all(town, output, 5, progress=stop, **options)


def test_an_interrupted_job_goes_on_where_it_stopped(town, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output)
    assert not output.exists()
    assert list((tmp_path / "recs.parquet.parts").glob("000000.*.parquet"))
    report = recommend_all(town, output, 5)
    assert report.resumed == 50
    assert_frame_equal(pl.read_parquet(output), town.recommend(everybody(town), 5))


def test_a_damaged_part_is_made_again(town, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output)
    (part,) = (tmp_path / "recs.parquet.parts").glob("000000.*.parquet")
    part.write_bytes(part.read_bytes()[:-9])
    assert recommend_all(town, output, 5).resumed == 0
    assert_frame_equal(pl.read_parquet(output), town.recommend(everybody(town), 5))


def test_parts_of_other_options_or_another_model_are_not_taken(town, hamlet, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output, keep_seen=True)
    with pytest.raises(DataError, match="interrupted job of another run or with other options"):
        recommend_all(town, output, 5)
    other = Recommender("ltocf", epochs=1, dim=8, negatives=4, seed=5).fit(hamlet)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(other, output, 5, keep_seen=True)
    assert recommend_all(town, output, 5, overwrite=True).resumed == 0


def renamed(hamlet: Dataset) -> Dataset:
    """The same pairs, of other people."""
    split = hamlet.split
    ids = IdMap(split.train.user_ids.ids.cast(pl.String) + "-of-another-town")
    named = {
        name: replace(getattr(split, name), user_ids=ids) for name in ("train", "valid", "test")
    }
    return replace(hamlet, split=replace(split, **named))


def test_a_job_does_not_go_on_with_other_peoples_lists(hamlet, tmp_path):
    here, there = (Recommender("ease").fit(data) for data in (hamlet, renamed(hamlet)))
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(here, output)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(there, output, 5)
    report = recommend_all(there, output, 5, overwrite=True)
    assert report.resumed == 0
    assert_frame_equal(pl.read_parquet(output), there.recommend(everybody(there), 5))


def test_a_job_does_not_go_on_with_a_model_that_differs_in_a_number_only(hamlet, tmp_path):
    one, other = (
        Recommender(
            "blend", members=[{"model": "ease", "weight": 1}, {"model": "itemknn", "weight": w}]
        ).fit(hamlet)
        for w in (1, 0.25)
    )
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(one, output)
    with pytest.raises(DataError, match="interrupted job of another run"):
        recommend_all(other, output, 5)


def test_an_old_file_is_not_replaced_unasked(town, tmp_path):
    output = tmp_path / "recs.parquet"
    output.write_text("precious")
    with pytest.raises(DataError, match="already exists"):
        recommend_all(town, output, 5)
    assert output.read_text() == "precious"
    recommend_all(town, output, 5, overwrite=True)
    assert pl.read_parquet(output).height == 600


def test_wrong_requests_write_nothing(town, tmp_path):
    with pytest.raises(ConfigError, match=r"give one of: .parquet, .csv"):
        recommend_all(town, tmp_path / "recs.xlsx", 5)
    with pytest.raises(ConfigError, match="k = 0"):
        recommend_all(town, tmp_path / "recs.parquet", 0)
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_everybodys_list(town, ltocf, tmp_path):
    town.save(run := tmp_path / "run")
    output = tmp_path / "recs.parquet"
    code, out, _ = ltocf("recommend", run, "--all-users", "-o", output, "-k", 3, "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 360
    assert pl.read_parquet(output).height == 360
    code, out, err = ltocf("recommend", run, "--all-users")
    assert (code, err) == (2, "error: --all-users needs a file: --output FILE\n")
    code, out, _ = ltocf("recommend", run, "--all-users", "-o", output, "--overwrite")
    assert "1,200 rows for 120 users" in out


def test_lists_may_go_into_a_folder_with_brackets(town, tmp_path):
    """A pattern that stands for other names is never meant by a path."""
    folder = tmp_path / "shop [1]"
    folder.mkdir()
    recommend_all(town, folder / "lists [2].parquet", 3)
    assert pl.read_parquet(folder / "lists [2].parquet", glob=False)["user"].n_unique() == 120


def test_approximate_lists_are_exact_where_every_item_is_a_candidate(town, tmp_path):
    """With k of 10 the candidates are 40, as many as the hamlet has items or nearly so."""
    output = tmp_path / "recs.parquet"
    report = recommend_all(town, output, 10, approximate=True)
    exact = town.recommend(everybody(town), 10)
    found = pl.read_parquet(output)
    assert found.drop("score").equals(exact.drop("score"))
    assert (found["score"] - exact["score"]).abs().max() < 1e-5
    assert (report.recall, report.recall_users) == (1.0, 120)


@pytest.mark.parametrize("model", ["mf", "ials", "gfcf"])
def test_lists_of_many_are_those_of_one_at_a_time(hamlet, model, monkeypatch):
    """Whose products are ranked without a table of scores; one of them has no history."""
    seen = hamlet.split.train.select(hamlet.split.train.users != 7)
    split = replace(hamlet.split, train=seen, valid=seen.empty(), test=seen.empty())
    options = {"epochs": 1, "dim": 8} if model == "mf" else {}
    town = Recommender(model, **options).fit(replace(hamlet, split=split))
    monkeypatch.setattr(lists, "MANY", 100)
    out = np.arange(len(town.fitted.seen.item_ids)) % 3 == 0
    closed = Rules.parse(exclude=[town.fitted.seen.item_ids.ids[1]])
    for options in (
        ListOptions(k=5),
        ListOptions(k=10_000, blocked=out),
        ListOptions(k=9, keep_seen=True, rules=closed),
    ):
        together = make_lists(town.fitted, people(town), options)
        assert len(together) == 120 and together[7].cold
        for person, found in zip(people(town), together, strict=True):
            (alone,) = make_lists(town.fitted, [person], options)
            assert found.cold == alone.cold
            np.testing.assert_array_equal(found.items, alone.items)
            np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-4, atol=1e-6)


def test_approximate_lists_keep_to_what_may_be_listed(town, tmp_path):
    items = town.fitted.seen.item_ids.ids.to_list()
    choice = {"candidates": items[:20], "exclude": items[3:5], "keep_seen": True}
    recommend_all(town, tmp_path / "recs.parquet", 30, approximate=True, **choice)
    exact = town.recommend(everybody(town), 30, **choice)
    assert pl.read_parquet(tmp_path / "recs.parquet").drop("score").equals(exact.drop("score"))


def test_the_recall_counts_what_is_missing(town):
    """With a candidate a place, rounding may lose an item; with a wrong index it loses most."""
    lists = ApproximateLists.of(town.fitted, ListOptions(k=5))
    assert lists.recall() == (1.0, 120)
    few = np.arange(6, dtype=np.int32)
    worse = replace(lists, index=QuantisedItems.of(lists.items, few))
    exact = [
        set(of.items) & set(few) for of in make_lists(town.fitted, people(town), ListOptions(k=5))
    ]
    assert worse.recall().recall == sum(map(len, exact)) / 600


def people(town: Recommender) -> list[Person]:
    return [Person(row) for row in range(town.fitted.seen.n_users)]


def test_people_without_a_history_get_what_is_popular_approximately_too(hamlet):
    seen = hamlet.split.train.select(hamlet.split.train.users != 7)
    split = replace(hamlet.split, train=seen, valid=seen.empty(), test=seen.empty())
    town = Recommender("mf", epochs=1, dim=8).fit(replace(hamlet, split=split))
    lists = ApproximateLists.of(town.fitted, ListOptions(k=5))
    (approximate,) = lists(np.array([7], np.int32))
    (exact,) = make_lists(town.fitted, [Person(7)], ListOptions(k=5))
    assert exact.cold
    assert approximate.cold
    assert approximate.items.tolist() == exact.items.tolist()


def test_what_cannot_be_approximate_is_refused(town, hamlet, tmp_path, ltocf):
    output = tmp_path / "recs.parquet"
    with pytest.raises(ConfigError, match="in the order of scores alone"):
        rules = Rules.parse(pin=[town.fitted.seen.item_ids.ids[0]])
        recommend_all(town, output, 5, approximate=True, rules=rules)
    with pytest.raises(ConfigError, match="products of vectors"):
        recommend_all(Recommender("ease").fit(hamlet), output, 5, approximate=True)
    assert not list(tmp_path.iterdir())
    town.save(run := tmp_path / "run")
    user = everybody(town)[0]
    code, _, err = ltocf("recommend", run, "--user", user, "--approximate")
    assert (code, err) == (
        2,
        "error: --approximate goes with --all-users; other lists are exact\n",
    )
    code, out, _ = ltocf("recommend", run, "--all-users", "--approximate", "-o", output)
    assert code == 0
    assert out.endswith("approximate: 100.00% of the items of exact lists, measured on 120 users\n")


def test_parts_of_approximate_lists_are_not_taken_for_exact_ones(town, tmp_path):
    output = tmp_path / "recs.parquet"
    interrupt_after_first_part(town, output, approximate=True)
    with pytest.raises(DataError, match="interrupted job of another run or with other options"):
        recommend_all(town, output, 5)

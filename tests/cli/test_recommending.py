"""ltocf recommend, similar, explain"""

import json

import polars as pl
import pytest

from ltocf.recommend.recommender import Recommender


@pytest.fixture(scope="module")
def run(hamlet, tmp_path_factory):
    path = tmp_path_factory.mktemp("recommending") / "run"
    Recommender("ltocf", epochs=2, dim=8, negatives=4).fit(hamlet).save(path)
    return path


@pytest.fixture(scope="module")
def people(hamlet):
    return hamlet.split.train.user_ids.ids.to_list()


@pytest.fixture(scope="module")
def places(hamlet):
    return hamlet.split.train.item_ids.ids.to_list()


def test_recommend_answers_several_users_and_lists_the_unknown(ltocf, run, people):
    arguments = ("recommend", run, "-u", people[0], "-u", "nobody", "-u", people[1], "-k", 2)
    code, out, _ = ltocf(*arguments, "--json")
    assert code == 0
    answer = json.loads(out)
    assert [row["user"] for row in answer["recommendations"]] == [people[0]] * 2 + [people[1]] * 2
    assert answer["unknown_users"] == ["nobody"]
    code, out, err = ltocf(*arguments)
    assert (code, err) == (0, "unknown users, ignored: nobody\n")
    assert f"for {people[1]}" in out
    code, out, err = ltocf(*arguments, "--strict")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown user 'nobody': not in the training data; for somebody")
    assert "--history ITEM,ITEM" in err


def test_recommend_takes_candidates_and_exclusions(ltocf, run, people, places):
    chosen = ",".join(places[:5])
    code, out, _ = ltocf(
        "recommend", run, "-u", people[0], "-k", 5, "--keep-seen", "--candidates", chosen,
        "--exclude", places[0], "--json",
    )  # fmt: skip
    assert code == 0
    assert sorted(row["item"] for row in json.loads(out)["recommendations"]) == sorted(places[1:5])


def test_recommend_by_history(ltocf, run, places, hamlet):
    history = f"{places[3]},{places[7]},unheard of"
    code, out, _ = ltocf("recommend", run, "--history", history, "-k", 4, "--json")
    assert code == 0
    answer = json.loads(out)
    expected = Recommender.load(run).recommend_new([places[3], places[7]], 4)
    assert [row["item"] for row in answer["recommendations"]] == expected["item"].to_list()
    assert answer["unknown_items"] == ["unheard of"]
    assert ltocf("recommend", run, "--history", history, "--gradient-steps", 3)[0] == 0


def test_an_empty_history_gets_popular_items_and_the_answer_says_so(ltocf, run):
    code, out, _ = ltocf("recommend", run, "--history", "", "-k", 2)
    assert code == 0
    assert "no history: what is popular" in out


def test_an_id_with_a_comma_is_quoted(tmp_path, ltocf):
    log = pl.DataFrame({"user": ["a", "a", "b"], "item": ['say "hi", then go', "y", "y"]})
    Recommender("popularity").fit(log).save(tmp_path / "run")
    quoted = '"say ""hi"", then go"'
    code, out, _ = ltocf("recommend", tmp_path / "run", "--history", quoted, "-k", 2, "--json")
    assert code == 0
    assert [row["item"] for row in json.loads(out)["recommendations"]] == ["y"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --user ID, --history ID,ID,... or --all-users"),
        (("--user", "a", "--history", "b"), "either --user ID, --history ID,ID,... or --all-users"),
        (("--user", "nobody"), "unknown user 'nobody'"),
        (("--history", "nothing"), "unknown item 'nothing'"),
        (("--history", "", "-k", "0"), "k = 0: must be a whole number of at least 1"),
        (("--all-users",), "--all-users needs a file: --output FILE"),
        (("--user", "a", "-o", "lists.txt"), "unknown kind of file 'lists.txt'"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_exit_2(ltocf, run, arguments, message):
    code, out, err = ltocf("recommend", run, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_similar_items_and_users(ltocf, run, people, places):
    code, out, _ = ltocf("similar", run, "--item", places[0], "-k", 3, "--json")
    assert code == 0
    assert [row["rank"] for row in json.loads(out)] == [1, 2, 3]
    assert "name" in json.loads(out)[0]
    code, out, _ = ltocf("similar", run, "--user", people[0], "-k", 3)
    assert code == 0
    assert f"similar to {people[0]}" in out
    assert ltocf("similar", run)[0] == 2


def test_explain_shows_terms_that_sum_to_the_score(ltocf, run, people):
    best = Recommender.load(run).recommend(people[0], 1)["item"][0]
    code, out, _ = ltocf("explain", run, "-u", people[0], "-i", best, "--json")
    assert code == 0
    why = json.loads(out)
    total = why["own"] + sum(term["contribution"] for term in why["because"])
    assert total == pytest.approx(why["score"], abs=1e-9)
    code, out, _ = ltocf("explain", run, "-u", people[0], "-i", best, "--most", 2)
    assert code == 0
    lines = out.splitlines()
    assert "because of" in lines[0]
    rest, own, score = (float(line.split()[0]) for line in lines[-3:])
    shown = sum(term["contribution"] for term in why["because"][:2])
    assert shown + rest + own == pytest.approx(score, abs=1e-3)


def test_explain_for_somebody_new(ltocf, run, places):
    code, out, _ = ltocf(
        "explain", run, "--history", f"{places[1]},{places[2]}", "-i", places[4], "--json"
    )
    assert code == 0
    assert json.loads(out)["user"] is None
    assert ltocf("explain", run, "-i", places[4])[0] == 2


def test_a_list_ends_with_the_catalogue(ltocf, run, places):
    code, out, _ = ltocf("recommend", run, "--history", "", "-k", 1000, "--json")
    assert code == 0
    assert sorted(row["item"] for row in json.loads(out)["recommendations"]) == sorted(places)


def test_every_history_that_is_given_gets_a_list(ltocf, run, places):
    one, other = places[3], f"{places[7]},{places[8]}"
    code, out, _ = ltocf("recommend", run, "--history", one, "--history", other, "-k", 2, "--json")
    assert code == 0
    rows = json.loads(out)["recommendations"]
    assert [row["user"] for row in rows] == ["new user 1"] * 2 + ["new user 2"] * 2
    alone = Recommender.load(run).recommend_new(other.split(","), 2)
    assert [row["item"] for row in rows[2:]] == alone["item"].to_list()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_lists_of_some_users_go_into_a_file(ltocf, run, people, tmp_path, suffix):
    file = tmp_path / f"lists.{suffix}"
    asked = ("recommend", run, "-u", people[0], "-u", people[1], "-k", 3, "-o", file)
    code, out, _ = ltocf(*asked)
    assert (code, out) == (0, f"6 rows for 2 users in {file}\n")
    read = pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)
    expected = Recommender.load(run).recommend(people[:2], 3)
    assert read["item"].to_list() == expected["item"].to_list()
    code, _, err = ltocf(*asked)
    assert code == 2 and "already exists" in err
    assert ltocf(*asked, "--overwrite", "--json")[0] == 0


def test_an_interrupted_bulk_job_says_how_to_go_on(ltocf, run, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ltocf.progress.Lines.__call__", interrupt)
    file = tmp_path / "lists.parquet"
    code, _, err = ltocf("recommend", run, "--all-users", "-o", file)
    assert code == 130
    assert "Run the same command to continue" in err
    monkeypatch.undo()
    code, out, _ = ltocf("recommend", run, "--all-users", "-o", file, "--json")
    assert (code, json.loads(out)["resumed"]) == (0, 120)


def test_an_option_that_is_given_twice_is_not_half_forgotten(ltocf, run, people, places):
    code, _, err = ltocf("explain", run, "-u", people[0], "-i", places[0], "-i", places[1])
    assert (code, err) == (2, "error: --item is given 2 times; give it once\n")
    code, out, _ = ltocf("similar", run, "-i", places[0], "-i", places[1], "-k", 2, "--json")
    assert [row["item"] for row in json.loads(out)] == [places[0]] * 2 + [places[1]] * 2


def test_explain_gives_ids_as_the_data_set_has_them(ltocf, tmp_path):
    log = pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [10, 11, 10, 12, 11]})
    Recommender("ease").fit(log).save(tmp_path / "run")
    code, out, _ = ltocf("explain", tmp_path / "run", "-u", "1", "-i", "12", "--json")
    assert code == 0
    why = json.loads(out)
    assert (why["user"], why["item"]) == (1, 12)
    assert sorted(term["item"] for term in why["because"]) == [10, 11]

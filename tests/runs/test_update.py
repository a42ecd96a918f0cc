"""A run grows by a log: old ids keep their rows, new ones get sensible answers."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
import torch

from ltocf.data.ingest.growth import Growth, enlarge
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import DataError, RunError
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.update import grow, update_run
from ltocf.runs.versions import rollback
from ltocf.storage.locks import exclusive
from tests.models.toys import used_by

PAIRS = [(f"u{c}{u}", f"i{c}{i}") for c in "ab" for u in range(6) for i in range(6) if u != i]
LOG = pl.DataFrame(PAIRS, schema=["user", "item"], orient="row")
# A newcomer of each community, who brings an item that the others do not know yet.
NEWS = pl.DataFrame(
    {
        "user": ["new a"] * 4 + ["new b"] * 3 + ["ua0", "ua0"],
        "item": ["ia0", "ia1", "ia2", "fresh a", "ib3", "ib4", "ib5", "fresh a", "ia1"],
    }
)


NETWORKS = ("neumf", "cmn")  # which remember what they were shown, unless they are held back
HELD_BACK = {"learning_rate": 0.02, "l2": 0.1, "sampling": "uniform", "batch_size": 32, "dim": 8}


def save(path, name="ltocf", **settings):
    fields = MODELS[name].Config.model_fields
    small = {key: 4 for key in ("dim", "rank") if key in fields}
    small |= used_by(name, epochs=30, negatives=4, learning_rate=0.05)
    if name in NETWORKS:
        small |= HELD_BACK
    Recommender(name, **small | settings).fit(LOG).save(path)
    return Run.open(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save(tmp_path_factory.mktemp("update") / "run")


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_new_users_and_items(name, tmp_path):
    run = save(tmp_path / "run", name)
    updated, added = update_run(run, NEWS, tmp_path / "bigger", epochs=30)
    assert added == Growth(interactions=8, repeated=1, users=2, items=1)
    recommender = Recommender.load(updated.path)
    found = recommender.recommend(["new a", "new b"], 3)
    assert found["user"].value_counts()["count"].to_list() == [3, 3]
    if name not in ("popularity", "random"):
        theirs = set(found.filter(pl.col("user") == "new b")["item"])
        assert len(theirs & {"ib0", "ib1", "ib2"}) >= (2 if name in NETWORKS else 3)


def test_old_ids_keep_their_rows(run, tmp_path):
    updated, _ = update_run(run, NEWS, tmp_path / "bigger", epochs=0)
    old, new = run.dataset.split.train, Run.open(updated.path).dataset.split.train
    assert new.user_ids.ids.to_list()[:12] == old.user_ids.ids.to_list()
    assert new.item_ids.ids.to_list()[:12] == old.item_ids.ids.to_list()
    assert new.user_ids.ids.to_list()[12:] == ["new a", "new b"]
    before, after = run.load().weight, updated.load().weight
    assert torch.equal(after[:12], before[:12])
    assert torch.equal(after[14:26], before[12:])
    assert not after[12:14].any()
    assert not after[26:].any()


def test_a_run_is_replaced_in_its_place_unless_told_otherwise(tmp_path):
    run = save(tmp_path / "run")
    update_run(run, NEWS, epochs=1)
    assert Run.open(tmp_path / "run").dataset.counts["users"] == 14
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_another_run_is_not_overwritten_unasked(run, tmp_path):
    save(tmp_path / "other")
    with pytest.raises(RunError, match="already exists"):
        update_run(run, NEWS, tmp_path / "other", epochs=0)
    update_run(run, NEWS, tmp_path / "other", epochs=0, overwrite=True)


def test_an_output_that_is_taken_is_refused_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("ltocf.runs.update.fit", lambda *_, **__: pytest.fail("it was fitted"))
    save(tmp_path / "other", "popularity")
    with pytest.raises(RunError, match="already exists"):
        update_run(run, NEWS, tmp_path / "other")


def test_a_log_that_adds_nothing_is_a_success_and_nothing_is_written(run, tmp_path):
    same, added = update_run(run, LOG.head(5), tmp_path / "bigger")
    assert same is run and added == Growth(0, 5, 0, 0) and added.nothing
    assert not list(tmp_path.iterdir())


def test_the_same_file_again_does_not_count_its_weights_twice(tmp_path):
    LOG.with_columns(plays=2).write_csv(tmp_path / "log.csv")
    Recommender("popularity").fit(tmp_path / "log.csv", weight="plays").save(tmp_path / "run")
    NEWS.with_columns(plays=3).write_csv(tmp_path / "news.csv")
    first, added = update_run(Run.open(tmp_path / "run"), tmp_path / "news.csv")
    assert added.interactions == 8
    again, added = update_run(first, tmp_path / "news.csv")
    assert again is first and added.nothing


def test_updates_can_follow_each_other(run, tmp_path):
    update_run(run, NEWS, tmp_path / "a", epochs=1)
    more = pl.DataFrame({"user": ["third"], "item": ["fresh a"]})
    updated, _ = update_run(Run.open(tmp_path / "a"), more, tmp_path / "b", epochs=1)
    assert Recommender.load(updated.path).recommend("third", 2).height == 2
    assert [entry["users"] for entry in updated.dataset.origin["updates"]] == [2, 1]


def test_integer_ids_meet_text_ids(tmp_path):
    log = pl.DataFrame({"user": [1, 1, 2], "item": [10, 20, 10]})
    Recommender("popularity").fit(log).save(tmp_path / "run")
    news = pl.DataFrame({"user": ["2", "guest"], "item": ["20", "10"]})
    with pytest.raises(
        DataError, match=r"user id 'guest' is not a whole number of 64 bits.*--text-ids"
    ):
        update_run(Run.open(tmp_path / "run"), news)
    updated, added = update_run(Run.open(tmp_path / "run"), news, text_ids=True)
    assert added == Growth(interactions=2, repeated=0, users=1, items=0)
    assert updated.dataset.split.train.user_ids.ids.to_list() == ["1", "2", "guest"]
    assert Recommender.load(tmp_path / "run").recommend(1, 1, keep_seen=True).height == 1


def test_a_test_pair_that_the_new_log_has_leaves_the_test_set(hamlet):
    split = hamlet.split
    taken = split.test.select(np.arange(len(split.test)) < 10)
    bigger, added = enlarge(hamlet, taken)
    assert added.interactions == 10
    assert len(bigger.split.test) == len(split.test) - 10
    assert len(bigger.split.train) == len(split.train) + 10


def test_new_items_have_empty_display_columns(hamlet):
    log = Interactions.build(np.array([0]), np.array([0]), 1, 1)
    bigger, _ = enlarge(hamlet, log)
    assert bigger.item_names.height == hamlet.item_names.height + 1
    assert bigger.item_names["name"][-1] is None


def test_a_table_of_items_names_the_new_ones_and_the_old_keep_theirs(run, tmp_path):
    pl.DataFrame({"item": ["fresh a", "ia0"], "name": ["Fresh!", "First"]}).write_csv(
        tmp_path / "names.csv"
    )
    first, _ = update_run(run, NEWS, tmp_path / "a", epochs=0, names=tmp_path / "names.csv")
    recommender = Recommender.load(first.path)
    found = recommender.recommend("ub0", 12, candidates=["fresh a", "ia0", "ia1"]).sort("item")
    assert found["name"].to_list() == ["Fresh!", "First", None]
    more = pl.DataFrame({"user": ["third"], "item": ["fresh b"]})
    pl.DataFrame({"item": ["fresh b", "ia0"], "name": ["Newer", ""], "kind": ["x", "y"]}).write_csv(
        tmp_path / "more.csv"
    )
    second, _ = update_run(first, more, tmp_path / "b", epochs=0, names=tmp_path / "more.csv")
    names = dict(
        zip(second.dataset.split.train.item_ids.ids, second.dataset.item_names["name"], strict=True)
    )
    assert (names["fresh a"], names["fresh b"], names["ia1"]) == ("Fresh!", "Newer", None)
    assert second.dataset.item_names["kind"].drop_nulls().to_list() == ["y", "x"]


def test_tensors_grow_along_every_axis_that_counts_users_or_items():
    def graph(n_users: int, n_items: int):
        from ltocf.graph.bipartite import BipartiteGraph

        return BipartiteGraph(Interactions.build(np.array([0]), np.array([0]), n_users, n_items))

    old = {
        "table": torch.arange(10.0).reshape(5, 2),
        "items": torch.ones(3, 2),
        "scalar": torch.tensor(7.0),
    }
    new = {"table": torch.empty(8, 2), "items": torch.empty(4, 2), "scalar": torch.empty(())}
    grown = grow(old, new, {"table": "nodes", "items": "items"}, graph(2, 3), graph(4, 4))
    assert grown["table"][:, 0].tolist() == [0, 2, 0, 0, 4, 6, 8, 0]
    assert grown["items"].tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]
    assert grown["scalar"] == 7


def test_rows_are_told_apart_by_name_where_as_many_people_leave_as_arrive():
    old = {"memory": torch.tensor([[1.0], [2.0], [3.0]]), "other": torch.ones(3)}
    new = {"memory": torch.empty(3, 1), "other": torch.empty(3)}
    from ltocf.graph.bipartite import BipartiteGraph

    graph = BipartiteGraph(Interactions.build(np.array([0]), np.array([0]), 3, 3))
    kept = np.array([True, False, True])
    grown = grow(old, new, {"memory": "users"}, graph, graph, kept)
    assert grown["memory"][:, 0].tolist() == [1, 3, 0]
    assert grown["other"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_names_the_tensors_that_have_a_row_for_each_user_or_item(name):
    from ltocf.graph.bipartite import BipartiteGraph

    users, items = np.divmod(np.arange(59 * 83), 83)
    graph = BipartiteGraph(Interactions.build(users[::7], items[::7], 59, 83))
    model = MODELS[name](graph, MODELS[name].Config())
    sizes = {59: "users", 83: "items", 59 + 83: "nodes"}
    shapes = {key: tuple(value.shape) or (0,) for key, value in model.state_dict().items()}
    expected = {
        key: sizes[shape[0]] for key, shape in shapes.items() if shape[:1] and shape[0] in sizes
    }
    assert {key: kind for key, kind in model.rows.items() if key in shapes} == expected
    assert not any(size in sizes for shape in shapes.values() for size in shape[1:])


def test_without_a_test_set_there_are_no_metrics(run, tmp_path):
    updated, _ = update_run(run, NEWS, tmp_path / "bigger", epochs=0)
    assert updated.metrics() == {}


def test_the_command_line_updates(ltocf, run, tmp_path):
    NEWS.rename({"user": "who", "item": "what"}).write_csv(tmp_path / "news.csv")
    output = tmp_path / "bigger"
    arguments = (
        "update", run.path, tmp_path / "news.csv", "-o", output, "--user", "who", "--item", "what",
        "--epochs", 1,
    )  # fmt: skip
    code, out, err = ltocf(*arguments, "--json")
    assert code == 0, err
    assert json.loads(out)["added"] == {
        "interactions": 8, "repeated": 1, "users": 2, "items": 1, "taken_back": 0,
    }  # fmt: skip
    code, out, err = ltocf("update", output, *arguments[2:3], *arguments[5:9])
    assert code == 0, "a nightly job goes on"
    assert out.startswith("nothing new: the run already has all of the log's 9 interactions")
    assert ltocf("update", output, tmp_path / "none.csv")[0] == 2
    assert ltocf("update", tmp_path / "no run", tmp_path / "news.csv")[0] == 2


STARS = "film;viewer;stars;plays\n" + "".join(
    f"{film};{viewer};{5 if (film + viewer) % 3 else 1};{1 + film}\n"
    for film in range(6)
    for viewer in range(8)
    if film != viewer
)


def rated(tmp_path, **recipe):
    (tmp_path / "stars.csv").write_text(STARS)
    columns = {"user": "viewer", "item": "film", "separator": ";", "split": "none"}
    prepare(tmp_path / "stars.csv", tmp_path / "data", Recipe(**(columns | recipe)))
    Recommender("popularity").fit(tmp_path / "data").save(tmp_path / "run")
    return Run.open(tmp_path / "run")


def test_an_update_remembers_threshold_columns_and_separator(tmp_path):
    run = rated(tmp_path, rating="stars", threshold=4)
    news = "viewer;film;stars\n0;6;5\n0;7;1\n1;6;4\n1;3;1\n0;0;2\n"
    (tmp_path / "news.csv").write_text(news)
    updated, added = update_run(run, tmp_path / "news.csv", tmp_path / "bigger")
    assert added == Growth(interactions=2, repeated=0, users=0, items=1)
    before, after = (
        set(zip(unliked.users.tolist(), unliked.items.tolist(), strict=True))
        for unliked in (run.dataset.split.unliked, updated.dataset.split.unliked)
    )
    assert after == before | {(0, 0)}, "a like, as (1, 3), is not taken back by a later rating"
    assert 7 not in updated.dataset.split.train.item_ids.ids, "nobody likes it"
    found = Recommender.load(updated.path).recommend(1, 7)["item"].to_list()
    assert found == [1], "all others were met, liked or not"


def test_a_log_of_likes_alone_must_be_said_to_be_one(tmp_path):
    run = rated(tmp_path, rating="stars", threshold=4)
    (tmp_path / "news.csv").write_text("viewer;film\n0;6\n")
    with pytest.raises(DataError, match="cannot guess the rating column"):
        update_run(run, tmp_path / "news.csv", tmp_path / "bigger")
    _, added = update_run(run, tmp_path / "news.csv", tmp_path / "bigger", every_row_liked=True)
    assert added.interactions == 1


def test_what_is_given_wins_over_what_is_remembered(ltocf, tmp_path):
    rated(tmp_path, rating="stars", threshold=4)
    (tmp_path / "news.csv").write_text("viewer,what,score\n0,6,3\n")
    arguments = ("--item", "what", "--rating", "score", "--threshold", 2, "--separator", ",")
    code, out, err = ltocf("update", tmp_path / "run", tmp_path / "news.csv", *arguments, "--json")
    assert code == 0, err
    assert json.loads(out)["added"]["interactions"] == 1


def test_weights_of_a_pair_that_comes_again_add_up(tmp_path):
    run = rated(tmp_path, weight="plays")
    (tmp_path / "news.csv").write_text("viewer;film;plays\n1;2;10\n1;6;4\n")
    updated, added = update_run(run, tmp_path / "news.csv", tmp_path / "bigger")
    assert added == Growth(interactions=1, repeated=1, users=0, items=1)
    train = updated.dataset.split.train
    weights = dict(zip(zip(train.users, train.items, strict=True), train.weights, strict=True))
    assert (weights[1, 2], weights[1, 6], weights[0, 2]) == (13, 4, 3)
    (tmp_path / "bare.csv").write_text("viewer;film\n1;3\n")
    with pytest.raises(DataError, match="weights from column 'plays', which the log does not have"):
        update_run(run, tmp_path / "bare.csv", tmp_path / "other")


def test_a_log_without_times_is_later_than_all_that_has_them(hamlet):
    times = hamlet.split.train.timestamps
    user = hamlet.split.train.user_ids.ids[0]
    log = Interactions.build(np.array([0]), np.array([0]), IdMap([user]), IdMap(["fresh"]))
    train = enlarge(hamlet, log)[0].split.train
    assert train.timestamps.max() == max(times.max(), hamlet.split.seen.timestamps.max()) + 1


def test_what_a_killed_update_left_is_removed_by_the_next(tmp_path, monkeypatch):
    run = save(tmp_path / "run")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr("ltocf.runs.update.use_version", die)
        with pytest.raises(KeyboardInterrupt):
            update_run(run, NEWS, epochs=0)
    versions = tmp_path / "run" / "versions"
    assert (versions / "2").is_dir()  # written whole, and in use by nobody
    (versions / ".2.ltocf-lock").touch()
    (versions / ".3.0123abcd.ltocf-tmp").mkdir()
    assert len(Run.open(tmp_path / "run").dataset.split.train) == len(run.dataset.split.train)
    update_run(Run.open(tmp_path / "run"), NEWS, epochs=0)
    assert [path.name for path in versions.iterdir()] == ["2"]
    assert Run.open(tmp_path / "run").dataset.counts["users"] == 14


def test_a_rollback_while_an_update_runs_is_refused(tmp_path):
    run = save(tmp_path / "run")
    update_run(run, NEWS, epochs=0)
    with (
        ThreadPoolExecutor() as pool,
        exclusive((tmp_path / "run").resolve()),
        pytest.raises(RunError, match="is being written by"),
    ):
        pool.submit(rollback, tmp_path / "run").result()
    assert rollback(tmp_path / "run").current == 1

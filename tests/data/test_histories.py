"""What came last counts most: the weights, the models that take them, and what they answer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.histories import HistoryWeights, histories_of
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.errors import ConfigError, DataError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.recommend.people import Person, joined_histories
from ltocf.recommend.recommender import Recommender
from tests.conftest import interactions_of
from tests.models.toys import used_by

LINEAR = [
    "gfcf",
    "bspm",
    "chebycf",
    "svdae",
    "turbocf",
    "ease",
    "sparse_ease",
    "rp3beta",
    "itemknn",
]


def timed(seed: int, n_users: int = 12, n_items: int = 9, latest: int = 6) -> Interactions:
    """Random pairs at random times, many of them at once."""
    draw = np.random.default_rng(seed)
    users, items = draw.integers(n_users, size=60), draw.integers(n_items, size=60)
    return Interactions.build(users, items, n_users, n_items, draw.integers(latest, size=60))


@given(st.integers(0, 10_000))
def test_how_many_items_came_later_equals_a_plain_count(seed):
    train = timed(seed)
    for place, (user, time) in enumerate(zip(train.users, train.timestamps, strict=True)):
        later = (train.users == user) & (train.timestamps > time)
        assert train.later_counts[place] == later.sum()


def test_without_times_no_item_counts_as_later():
    train = interactions_of([(0, 1), (0, 2)], 1, 3)
    assert histories_of(train).toarray().tolist() == [[0, 1, 1]]
    with pytest.raises(DataError, match="no times"):
        _ = train.later_counts
    with pytest.raises(ConfigError, match=r"recency = 0.5 needs the time .*; name the time column"):
        HistoryWeights(0.5).of(train)


def test_weights_by_hand():
    train = Interactions.build(
        np.array([0, 0, 0, 1]), np.array([0, 1, 2, 1]), 3, 3, np.array([30, 10, 20, 5])
    )
    raw = histories_of(train).toarray()
    np.testing.assert_allclose(raw, [[1, 1 / 3, 1 / 2], [0, 1, 0], [0, 0, 0]], rtol=1e-6)
    expected = np.array([1, 3**-0.5, 2**-0.5])
    weights = HistoryWeights(0.5).of(train).toarray()
    np.testing.assert_allclose(weights[0], 3 * expected / expected.sum(), rtol=1e-6)
    assert weights[1:].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert HistoryWeights(0).of(train).toarray().max() == 1


def test_a_new_history_is_in_the_order_of_time():
    train = Interactions.build(np.array([0]), np.array([0]), 1, 5)
    people = [Person.of_history(np.array(items, np.int32)) for items in ([4, 1, 4, 2], [])]
    matrix = joined_histories(train, people)
    np.testing.assert_allclose(
        matrix.toarray(), [[0, 1 / 2, 1, 0, 1 / 3], [0, 0, 0, 0, 0]], rtol=1e-6
    )


@pytest.mark.parametrize("seed", range(3))
def test_lightgcn_against_dense_matrices(seed):
    train = timed(seed)
    graph, E = BipartiteGraph(train), torch.randn(21, 4)
    model = build_model(graph, "lightgcn", {"layers": 3, "dim": 4, "recency": 0.8})
    model.weight.data.copy_(E)
    A = (graph @ torch.eye(21)).numpy()
    inner = (np.eye(21) + A + A @ A) @ E.numpy() / 4
    rows = HistoryWeights(0.8).normalise(histories_of(train), train.item_degrees).toarray()
    users = E[:12].numpy() / 4 + rows @ inner[12:]
    items = E[12:].numpy() / 4 + A[12:] @ inner
    found = model.scorer().vectors()
    assert found is not None
    np.testing.assert_allclose(found.users, users, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.items, items, rtol=1e-4, atol=1e-5)
    assert not np.allclose(rows, A[:12, 12:])  # or this test would show nothing


@pytest.mark.parametrize("name", ["ltocf", "lightgcn"])
def test_without_an_order_among_times_it_is_the_plain_model(name):
    train = timed(1, latest=1)
    plain, recent = (
        build_model(BipartiteGraph(train), name, {"dim": 4, "recency": recency})
        for recency in (0, 0.7)
    )
    plain.initialise_(0)
    recent.load_state_dict(plain.state_dict())
    vectors = recent.scorer().vectors().users, plain.scorer().vectors().users
    np.testing.assert_allclose(*vectors, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ltocf", "lightgcn"])
def test_recency_changes_lists_and_not_what_training_learns(name, hamlet):
    settings = {"epochs": 2, "dim": 4, "protocol": "fixed"}
    settings |= {"learn_times": "training"} if name == "ltocf" else {}
    plain, recent = (
        Recommender(name, recency=recency, **settings).fit(hamlet).model for recency in (0, 0.7)
    )
    torch.testing.assert_close(recent.weight, plain.weight, rtol=0, atol=0)
    vectors = recent.scorer().vectors(), plain.scorer().vectors()
    assert not np.allclose(vectors[0].users, vectors[1].users)


@pytest.mark.parametrize("name", LINEAR)
def test_a_new_user_with_a_known_ones_history_is_scored_as_they_are(name, hamlet):
    small = {"rank": 8} if name in ("gfcf", "bspm", "chebycf", "svdae") else {}
    recommender = Recommender(name, recency=0.7, **small).fit(hamlet)
    train, user = hamlet.split.train, 3
    ordered = train.items_of(user)[np.argsort(train.timestamps[train.users == user])]
    known = recommender.recommend(train.user_ids[np.array([user])], 5)
    history = train.item_ids[ordered]
    new = recommender.recommend_new(history, 5)
    assert new["item"].to_list() == known["item"].to_list()
    np.testing.assert_allclose(new["score"], known["score"], rtol=1e-4)
    other_way = recommender.recommend_new(history[::-1], 5)
    assert not np.allclose(other_way["score"], known["score"], rtol=1e-4)


def test_ease_of_few_users_weighs_them_too():
    train = timed(0, n_users=8, n_items=20)
    model = build_model(BipartiteGraph(train), "ease", {"recency": 0.7})
    model.initialise_(0)
    scorer, users = model.scorer(), np.arange(8, dtype=np.int32)
    new = scorer.from_history(histories_of(train))
    np.testing.assert_allclose(scorer(users), new, rtol=1e-5, atol=1e-5)
    plain = build_model(BipartiteGraph(train), "ease", {})
    plain.initialise_(0)
    assert not np.allclose(scorer(users), plain.scorer()(users), atol=1e-3)


@pytest.mark.parametrize("name", ["ltocf", "gfcf", "sparse_ease", "blend"])
def test_reasons_still_sum_to_the_score(name, hamlet):
    parts = [
        {"model": "lightgcn", "weight": 1.0, "options": {"dim": 8, "recency": 0.9}},
        {"model": "ease", "weight": 0.5, "options": {"recency": 0.4}},
    ]
    settings = {"members": parts} if name == "blend" else {"recency": 0.7}
    recommender = Recommender(name, **used_by(name, epochs=2), **settings).fit(hamlet)
    for row in recommender.recommend(hamlet.split.train.user_ids.ids[5], 3).to_dicts():
        why = recommender.explain(row["user"], row["item"])
        assert why.own + why.popularity + why.because["contribution"].sum() == pytest.approx(
            row["score"], abs=1e-4
        )


def moved() -> Interactions:
    """Two communities of items; user 0 had three of the first and moved to the second for two."""
    pairs = [(user, item + 5 * (user > 10)) for user in range(1, 21) for item in range(5)]
    pairs += [(0, 0), (0, 1), (0, 2), (0, 5), (0, 6)]
    users, items = np.array(pairs).T
    return Interactions.build(users, items, 21, 10, np.arange(len(pairs)))


@pytest.mark.parametrize("name", ["gfcf", "ease", "lightgcn"])
def test_with_recency_people_who_moved_get_places_at_their_new_home(name):
    train = moved()
    nothing = train.select(np.zeros(len(train), bool))
    data = Dataset("moved", Split(train, nothing, nothing))
    first = {}
    for recency in (0.0, 2.0):
        settings = {"epochs": 30, "dim": 8} if name == "lightgcn" else {}
        recommender = Recommender(name, recency=recency, **settings).fit(data)
        first[recency] = recommender.recommend(0, 1)["item"][0]
    assert first[0.0] in (3, 4) and first[2.0] in (7, 8, 9)


def test_a_run_keeps_the_times_it_needs(ltocf, tmp_path):
    run = tmp_path / "run"
    code, _, err = ltocf("train", "town", "-o", run, "model=lightgcn", "recency=0.7", "epochs=1")
    assert code == 0, err
    loaded = Recommender.load(run)
    assert loaded.model.config.model_dump()["recency"] == 0.7
    code, _, err = ltocf("recommend", run, "--user", loaded.fitted.seen.user_ids.ids[0], "-k", 3)
    assert code == 0, err


def test_data_without_times_are_refused_in_one_line(ltocf, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("user,item\n" + "".join(f"u{i % 7},i{i % 5}\n" for i in range(35)))
    assert ltocf("prepare", log, "-o", tmp_path / "data")[0] == 0
    arguments = ("train", tmp_path / "data", "-o", tmp_path / "run")
    code, _, err = ltocf(*arguments, "model=gfcf", "recency=0.5")
    assert code == 2
    assert "recency = 0.5 needs the time of each interaction" in err and err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_reference_solver_has_no_recency():
    with pytest.raises(ConfigError, match="needs propagation='spectral'"):
        build_model(BipartiteGraph(timed(0)), "ltocf", {"recency": 0.5, "propagation": "reference"})


def test_weights_do_not_change_what_they_are_given():
    rows = csr_array(np.array([[1, 0.5, 0]], dtype=np.float32))
    HistoryWeights(0.5).weigh(rows)
    assert rows.toarray().tolist() == [[1, 0.5, 0]]

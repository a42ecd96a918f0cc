"""Items that nobody has touched: by hand, and one that comes later against one that was there."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import Split, no_split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.ranking.top_k import top_k
from ltocf.scorers.complete import complete
from ltocf.scorers.scorer import Scorer
from ltocf.search.judging import Judges

KINDS = ["tea", "tea", "tea", "cup", "cup", "cup", "tea"]  # nobody has touched the last
BRANDS = [["x"], ["x", "y"], ["y"], ["x"], ["y", "z"], ["z"], ["x"]]
EVERYBODY = np.arange(9, dtype=np.int32)
TWO = [
    {"model": "attributes", "weight": 0.4, "options": {}},
    {"model": "rp3beta", "weight": 1.0, "options": {}},
]
TAGGED = ["gfcf", "bspm", "chebycf", "svdae", "turbocf", "sparse_ease", "rp3beta", "itemknn"]
MODELS = [
    ("attributes", {}), ("rp3beta", {}), ("itemknn", {}), ("popularity", {}), ("turbocf", {}),
    ("blend", {"members": TWO}),
    *((name, {"tag_weight": 0.7}) for name in TAGGED),
]  # fmt: skip


def shop(n_items: int) -> Interactions:
    chosen = np.random.default_rng(3).random((9, 6)) < 0.5
    users, items = np.nonzero(chosen)
    pairs = Interactions.build(users, items, IdMap.range(9), IdMap(list("abcdefg")[:n_items]))
    names = pl.DataFrame({"kind": KINDS[:n_items], "brand": BRANDS[:n_items]})
    return Dataset("shop", no_split(pairs), names).split.train


def fitted(train: Interactions, name: str, options: dict[str, object]) -> Scorer:
    model = build_model(BipartiteGraph(train), name, options)
    model.initialise_(0)
    return model.scorer()


@pytest.mark.parametrize(("name", "options"), MODELS)
def test_an_item_that_comes_later_is_as_if_it_had_been_there(
    name: str, options: dict[str, object]
) -> None:
    before, after = shop(6), shop(7)
    live = complete(fitted(before, name, options), after, 6)
    trained = complete(fitted(after, name, options), after)
    np.testing.assert_array_equal(live(EVERYBODY), trained(EVERYBODY))
    histories = csr_array(histories_of(after, ordered=False)[[2, 5]])
    np.testing.assert_array_equal(live.from_history(histories), trained.from_history(histories))
    item, history = np.array([6, 1], np.int32), csr_array(histories[[0]])
    ours, theirs = live.explain(item, history), trained.explain(item, history)
    np.testing.assert_allclose(ours.of_history, theirs.of_history, rtol=1e-6, atol=1e-9)


def test_its_score_is_the_mean_of_those_most_like_it() -> None:
    train = shop(7)
    known = fitted(train, "rp3beta", {})
    scorer = complete(known, train)
    scores, plain = scorer(EVERYBODY), known(EVERYBODY)
    assert train.item_tags is not None
    tags = train.item_tags.toarray()
    rare = tags * np.log(7 / tags[:6].sum(0))
    unit = rare / np.linalg.norm(rare, axis=1, keepdims=True)
    shares = unit[:6] @ unit[6]
    np.testing.assert_array_equal(scores[:, :6], plain[:, :6])
    np.testing.assert_allclose(scores[:, 6], plain[:, :6] @ shares / shares.sum(), rtol=1e-5)
    history = csr_array(histories_of(train, ordered=False)[[4]])
    terms = scorer.explain(np.array([6], np.int32), history)
    found = scorer.from_history(history)[0, 6]
    np.testing.assert_allclose(
        terms.own + terms.popularity + terms.of_history.sum(0), found, rtol=1e-4
    )
    alike = scorer.similar_items(np.array([6, 0, 1, 2, 3, 4, 5], np.int32))
    expected = (shares / shares.sum()) @ alike[1:]
    np.testing.assert_allclose(alike[0], expected, rtol=1e-5, atol=1e-7)


def test_without_tags_it_scores_nothing() -> None:
    train = shop(7).with_item_tags(None)
    assert not complete(fitted(train, "itemknn", {}), train)(EVERYBODY)[:, 6].any()


def test_its_tags_change_nothing_for_the_others() -> None:
    before, after = shop(6), shop(7)
    assert before.item_tags is not None
    assert after.item_tags is not None
    np.testing.assert_array_equal(before.item_tags.toarray(), after.item_tags.toarray()[:6])


@pytest.mark.parametrize("name", ["lightgcn", "ltocf"])
def test_an_item_that_comes_later_to_vectors_is_as_if_it_had_been_there(name: str) -> None:
    """Trained vectors are drawn anew for one item more, so both sides are given the same ones."""
    before, after = shop(6), shop(7)
    models = [
        build_model(BipartiteGraph(train), name, {"dim": 4, "tag_weight": 0.7, "start": "random"})
        for train in (before, after)
    ]
    weight = torch.from_numpy(np.random.default_rng(0).standard_normal((16, 4), np.float32))
    with torch.no_grad():
        for model, rows in zip(models, (15, 16), strict=True):
            model.get_parameter("weight").copy_(weight[:rows])
    live, trained = (
        complete(model.scorer(), after, known) for model, known in zip(models, (6, 7), strict=True)
    )
    np.testing.assert_array_equal(live(EVERYBODY), trained(EVERYBODY))
    assert live(EVERYBODY)[:, 6].any()
    histories = csr_array(histories_of(after, ordered=False)[[2, 5]])
    np.testing.assert_array_equal(live.from_history(histories), trained.from_history(histories))


def test_the_judges_of_a_search_score_untouched_items_as_lists_do() -> None:
    train = shop(7)
    wanted = Interactions.build(  # everybody came for what nobody had touched
        EVERYBODY, np.full(9, 6), train.user_ids, train.item_ids
    )
    nobody = wanted.select(np.zeros(9, bool))
    judges = Judges(Split(train, wanted, nobody, kind="items"), seed=0)
    scorer = fitted(train, "itemknn", {})
    rated = judges.rate(scorer)
    assert rated.metrics["recall@20"] == 1.0
    own, served = (
        top_k(of, EVERYBODY, 7, n_items=7, seen=train).items
        for of in (scorer, complete(scorer, train))
    )
    np.testing.assert_array_equal(rated.opinion.top, served)
    assert not np.array_equal(own, served)

"""Items by their tags against the formula, written densely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import no_split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.attributes import Attributes
from ltocf.recommend.recommender import Recommender

TAGS = np.array(
    [[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]], np.float32
)  # of six items; nobody has touched the last


def make_train() -> Interactions:
    chosen = np.random.default_rng(3).random((9, 5)) < 0.5
    users, items = np.nonzero(chosen)
    pairs = Interactions.build(users, items, 9, 6)
    return pairs.with_item_tags(csr_array(TAGS))


def fitted(train: Interactions, **settings: float) -> Attributes:
    model = Attributes(BipartiteGraph(train), Attributes.Config(**settings))
    model.initialise_(seed=0)
    return model


def tag_vectors() -> NDArray[np.float64]:
    Z = TAGS * np.log(6 / TAGS[:5].sum(0))  # the touched items say how rare a tag is
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def test_scores_are_the_regression_on_tags_and_the_tags_in_common() -> None:
    train, Z = make_train(), tag_vectors()
    R = np.zeros((9, 6))
    R[train.users, train.items] = 1
    C = R.T @ (R / np.sqrt(np.maximum(R.sum(1, keepdims=True), 1)))
    np.fill_diagonal(C, 0)
    sums = np.where(C.sum(0) > 0, C.sum(0), 1)
    V = (C / sums[:, None] ** 0.5 / sums**0.3) @ Z @ np.linalg.inv(Z[:5].T @ Z[:5] + 2 * np.eye(4))
    V /= np.linalg.norm(V, axis=1)[:5].mean()
    expected = R @ (V + 0.7 * Z) @ Z.T * (1 + R.sum(0)) ** 0.5
    model = fitted(train, l2=2.0, shared=0.7, popularity_power=0.5)
    found = model.scorer()(np.arange(9, dtype=np.int32))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_two_items_with_the_same_tags_score_alike_touched_or_not() -> None:
    scores = np.asarray(fitted(make_train(), popularity_power=0.0).scorer()(np.array([1, 2])))
    np.testing.assert_allclose(scores[:, 5], scores[:, 3], rtol=1e-5)


def test_without_tags_each_item_is_its_own() -> None:
    train = make_train().with_item_tags(None)
    single = train.with_item_tags(csr_array(np.eye(6, dtype=np.float32)))
    settings = {"l2": 2.0, "shared": 0.0}
    everybody = np.arange(9, dtype=np.int32)
    ours, theirs = (fitted(pairs, **settings).scorer()(everybody) for pairs in (train, single))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_data_set_with_a_table_of_items_gives_models_the_tags() -> None:
    kinds = ["tea", "tea", "tea", "cup", "cup", "cup"]
    names = pl.DataFrame({"name": [f"No. {row}" for row in range(6)], "kind": kinds})
    pairs = replace(make_train(), tags=None, item_ids=IdMap(list("abcdef")))
    dataset = Dataset("shop", no_split(pairs), names)
    tags = dataset.split.train.item_tags
    assert tags is not None
    np.testing.assert_array_equal(tags.toarray()[:, 0], [0, 0, 0, 1, 1, 1])
    recommender = Recommender("attributes", popularity_power=0.0, shared=9.0).fit(dataset)
    assert {3, 4} & set(pairs.items[pairs.users == 1].tolist())
    why = recommender.explain(1, "f")
    assert why.own + why.popularity + why.because["contribution"].sum() == pytest.approx(
        why.score, rel=1e-4
    )
    assert why.sentence() == f"shares cup with {why.because['name'][0]}, which you have"

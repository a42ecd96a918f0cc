"""Tags as nodes: the same filter on the bigger graph."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.scorers.complete import complete

TAGS = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1], [1, 0]], np.float32)
PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 2)]
EVERYBODY = np.arange(4, dtype=np.int32)
CLOSED = [
    "gfcf", "bspm", "chebycf", "svdae", "turbocf", "ease", "sparse_ease", "rp3beta",
    "itemknn", "ials",
]  # fmt: skip


def small_graph() -> BipartiteGraph:
    """Nobody has item 6, which shares a tag with 0, 1 and 2."""
    users, items = np.array(PAIRS).T
    train = Interactions.build(users, items, 4, 7)
    return BipartiteGraph(train.with_item_tags(csr_array(TAGS)))


def bigger_graph(weight: float) -> BipartiteGraph:
    """With two more users, who have the items of the two tags that somebody has touched."""
    items, tags = np.nonzero(TAGS[:6])
    users = np.concatenate([np.array(PAIRS)[:, 0], 4 + tags])
    weights = np.concatenate([np.ones(len(PAIRS)), np.full(len(tags), 2**weight - 1)])
    pairs = Interactions.build(
        users, np.concatenate([np.array(PAIRS)[:, 1], items]), 6, 7,
        weights=weights.astype(np.float32),
    )  # fmt: skip
    return BipartiteGraph(pairs)


def settings_of(name: str) -> dict[str, int]:
    return {"rank": 3} if name in ("gfcf", "bspm", "chebycf", "svdae") else {}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_tags_as_nodes_are_the_same_filter_on_the_bigger_graph(name: str, weight: float) -> None:
    ours = build_model(small_graph(), name, settings_of(name) | {"tag_weight": weight})
    theirs = build_model(bigger_graph(weight), name, settings_of(name))
    for model in (ours, theirs):
        model.initialise_(0)
    found, expected = (np.asarray(model.scorer()(EVERYBODY)) for model in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CLOSED)
def test_an_item_nobody_has_is_ranked_by_the_tags_it_shares(name: str) -> None:
    model = build_model(small_graph(), name, settings_of(name) | {"tag_weight": 1.0})
    model.initialise_(0)
    scores = np.asarray(complete(model.scorer(), model.people)(EVERYBODY))
    assert scores.shape == (4, 7)
    assert scores[0, 6] > scores[2, 6]  # the first has three items with that tag, the other none
    assert np.asarray(model.scorer().similar_users(EVERYBODY)).shape == (4, 4)


TRAINED = [
    ("lightgcn", {}), ("lightgcn", {"recency": 0.5}), ("ltocf", {}), ("ltocf", {"recency": 0.5}),
    ("ltocf", {"propagation": "reference"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), TRAINED)
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_tags_are_nodes_of_the_graph_that_vectors_spread_on(
    name: str, options: dict[str, object], weight: float
) -> None:
    users, items = np.array(PAIRS).T
    times = np.arange(len(PAIRS))
    train = Interactions.build(users, items, 4, 7, times)
    graph = BipartiteGraph(train.with_item_tags(csr_array(TAGS)))
    ours = build_model(graph, name, {"dim": 3, "tag_weight": weight} | options)
    ours.initialise_(0)
    plain = {key: value for key, value in options.items() if key != "recency"}
    theirs = build_model(bigger_graph(weight), name, {"dim": 3} | plain)
    theirs.initialise_(0)
    with torch.no_grad():
        theirs.weight.zero_()
        theirs.weight[:4] = ours.weight[:4]
        theirs.weight[6:12] = ours.weight[4:10]  # tags start from zeros, as do untouched items
        found, expected = ours.embeddings(), theirs.embeddings()
    if "recency" not in options:
        torch.testing.assert_close(
            found, expected[[*range(4), *range(6, 13)]], rtol=1e-4, atol=1e-5
        )
    else:  # which changes what users see last, and no item
        torch.testing.assert_close(found[4:], expected[6:], rtol=1e-4, atol=1e-5)
    assert found[10].abs().max() == 0  # nobody has it, so it is no node: its nearest speak for it
    assert np.abs(complete(ours.scorer(), graph.interactions)(EVERYBODY)[:, 6]).max() > 0
    if options.get("propagation") == "reference":
        return  # lists of the new are by the response, which is as exact as its tolerance says
    scorer = ours.scorer()
    again = scorer.from_history(histories_of(train), EVERYBODY)
    np.testing.assert_allclose(again, scorer(EVERYBODY), rtol=1e-3, atol=1e-4)


def test_tags_need_attributes() -> None:
    users, items = np.array(PAIRS).T
    graph = BipartiteGraph(Interactions.build(users, items, 4, 7))
    with pytest.raises(ConfigError, match=r"tag_weight = 1\.0 needs attributes of the items"):
        build_model(graph, "gfcf", {"tag_weight": 1.0})


def test_a_data_set_can_be_given_to_another_process(hamlet: Dataset) -> None:
    """With tags that nobody has asked for yet, and with those that have been made."""
    for _ in range(2):
        other = pickle.loads(pickle.dumps(hamlet))
        found = hamlet.split.train.item_tags
        assert found is not None
        assert (other.split.train.item_tags != found).nnz == 0
    alone = small_graph().interactions
    assert (pickle.loads(pickle.dumps(alone)).item_tags.toarray() == TAGS).all()

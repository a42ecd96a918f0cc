"""Weights of interactions in the graph and in the closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import no_split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.normalisations import neighbour_mean, neighbour_sum
from ltocf.graph.spectrum import singular_vectors
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender

# Models that look at pairs only, as sampled or as zeros and ones.
PAIRS_ONLY = {"popularity", "random", "mf", "neumf", "cmn", "hoprec", "multvae", "grmf"}
SMALL = {"dim": 8, "rank": 8, "epochs": 2, "negatives": 2, "neighbours": 10}


def listens(weights: str = "drawn") -> Interactions:
    random = np.random.default_rng(0)
    chosen = random.random((30, 20)) < 0.35
    chosen[np.arange(30), np.arange(30) % 20] = True
    users, items = np.nonzero(chosen)
    plays = {
        "none": None,
        "ones": np.ones(len(users), np.float32),
        "drawn": random.integers(1, 40, size=len(users)).astype(np.float32),
    }[weights]
    times = random.permutation(len(users))
    return Interactions.build(users, items, 30, 20, times, plays)


def dense_adjacency(train: Interactions) -> torch.Tensor:
    """By the definition, entry by entry."""
    S = torch.zeros(train.n_users, train.n_items, dtype=torch.float64)
    assert train.weights is not None
    for user, item, weight in zip(train.users, train.items, train.weights, strict=True):
        S[user, item] = float(np.log2(1 + weight))
    N = S / torch.sqrt(S.sum(1, keepdim=True) * S.sum(0, keepdim=True))
    zeros = torch.zeros
    return torch.cat(
        [torch.cat([zeros(30, 30), N], 1), torch.cat([N.T, zeros(20, 20)], 1)]
    ).double()


def test_a_weighted_graph_is_its_definition():
    train = listens()
    graph, A = BipartiteGraph(train), dense_adjacency(train)
    E = torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(graph @ E, A @ E)
    filtered, _ = graph.chebyshev_sum(E, [0.5, 0.25, 0.125])
    expected = 0.5 * E + 0.25 * A @ E + 0.125 * (2 * A @ A @ E - E)
    torch.testing.assert_close(filtered, expected)
    values = singular_vectors(graph, 20).values
    torch.testing.assert_close(values, torch.linalg.svdvals(A[:30, 30:]))
    assert float(values[0]) == pytest.approx(1)


def test_neighbour_means_are_weighted_means():
    train = listens()
    graph = BipartiteGraph(train)
    ones = torch.ones(50, 3)
    torch.testing.assert_close(neighbour_mean(graph, ones), ones)
    sums = neighbour_sum(graph, ones)[:30, 0]
    torch.testing.assert_close(sums, torch.from_numpy(train.user_strengths).float())


def fitted(name: str, weights: str, **settings: object) -> Recommender:
    fields = {**MODELS[name].Config.model_fields, "epochs": 0, "negatives": 0}
    small = {key: value for key, value in SMALL.items() if key in fields}
    if "ltocf" not in name and not MODELS[name].losses:
        small.pop("negatives"), small.pop("epochs")
    data = Dataset("listens", no_split(listens(weights)))
    return Recommender(name, **(small | settings)).fit(data)


def scores_of(recommender: Recommender) -> torch.Tensor:
    return torch.from_numpy(recommender.scorer(np.arange(30, dtype=np.int32)))


SETTLED = [name for name in MODELS if name not in ("blend", "random")]


@pytest.mark.parametrize("name", SETTLED)
def test_weights_of_one_change_nothing_and_others_change_what_uses_them(name):
    # From the spectrum, every model of vectors would see the weights in its start.
    start = {"start": "random"} if "start" in MODELS[name].Config.model_fields else {}
    plain, ones, drawn = (scores_of(fitted(name, w, **start)) for w in ("none", "ones", "drawn"))
    torch.testing.assert_close(ones, plain, rtol=1e-3, atol=1e-4)
    change = float((drawn - plain).norm() / plain.norm())
    if name in PAIRS_ONLY:
        assert change < 1e-4
    else:
        assert change > 1e-2


@pytest.mark.parametrize("recency", [0, 0.5])
@pytest.mark.parametrize("name", ["ltocf", "lightgcn", "gfcf", "ease", "itemknn", "chebycf"])
def test_reasons_still_sum_to_the_score(name, recency):
    recommender = fitted(name, "drawn", recency=recency)
    scores = scores_of(recommender)
    for user, item in ((0, 3), (7, 19)):
        why = recommender.explain(user, item)
        assert why.score == pytest.approx(float(scores[user, item]), rel=1e-3, abs=1e-4)
        assert why.own + why.popularity + why.because["contribution"].sum() == pytest.approx(
            why.score, abs=1e-9
        )


@pytest.mark.parametrize("name", ["ltocf", "gfcf", "ease"])
def test_a_strong_item_counts_more_in_its_owners_list(name):
    train = listens("ones")
    weights = train.weights.copy()
    weights[train.indptr[4]] = 1000  # user 4's first item
    strong = Dataset("strong", no_split(replace(train, weights=weights)))
    # From the spectrum, the weight would turn the vectors too, and not only count among them.
    settings = {"epochs": 0, "dim": 8, "start": "random"} if name == "ltocf" else {}
    settings |= {"rank": 8} if name == "gfcf" else {}
    before = Recommender(name, **settings).fit(Dataset("plain", no_split(train)))
    after = Recommender(name, **settings).fit(strong)
    owned = train.items[train.indptr[4] : train.indptr[5]].tolist()

    def share(recommender: Recommender) -> float:
        """Of the strong item in the scores of what user 4 has not, on average."""
        shares = []
        for item in set(range(20)) - set(owned):
            because = recommender.explain(4, item).because
            parts = dict(zip(because["item"], because["contribution"].abs(), strict=True))
            shares.append(parts[owned[0]] / sum(parts.values()))
        return sum(shares) / len(shares)

    assert share(after) > 2 * share(before)


def test_ease_by_users_and_by_items_agree_on_weighted_histories():
    train = listens()
    turned = Interactions.build(train.items, train.users, 20, 30, None, train.weights)
    settings = {"l2": 3.0}
    for pairs in (train, turned):  # fewer items than users, and the other way round
        fit = Recommender("ease", **settings).fit(Dataset("d", no_split(pairs)))
        R = np.zeros((pairs.n_users, pairs.n_items))
        R[pairs.users, pairs.items] = pairs.strengths
        Q = R / R.sum(1, keepdims=True) * (R > 0).sum(1, keepdims=True)
        R /= np.sqrt(np.square(pairs.strengths).mean())
        P = np.linalg.inv(R.T @ R + 3.0 * np.eye(pairs.n_items))
        expected = Q @ (np.eye(pairs.n_items) - P / np.diag(P))
        scores = fit.scorer(np.arange(pairs.n_users, dtype=np.int32))
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)

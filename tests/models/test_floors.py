from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.data.sources.town import make_town
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.popularity import Popularity
from ltocf.models.random import Random


def popularity(train: Interactions, recent: float) -> NDArray[np.float64]:
    model = Popularity(BipartiteGraph(train), Popularity.Config(recent=recent))
    model.initialise_(seed=0)
    scores = np.asarray(model.scorer()(np.array([0, 1], np.int32)), dtype=np.float64)
    np.testing.assert_array_equal(scores[0], scores[1])
    return np.expm1(scores[1])


def test_popularity_counts() -> None:
    train = make_town(50, 30).dataset.split.train
    np.testing.assert_allclose(popularity(train, 1.0), train.item_degrees, rtol=1e-5)


def test_recent_popularity_counts_the_latest_share_of_all_interactions() -> None:
    users, items = np.array([[0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 1, 3, 0, 3]])
    times = np.array([1, 2, 3, 4, 5, 6, 7, 8])
    train = Interactions.build(users, items, 3, 4, times)
    np.testing.assert_allclose(popularity(train, 0.5), [1, 1, 0, 2], rtol=1e-5)
    np.testing.assert_allclose(popularity(train, 1.0), [3, 2, 1, 2], rtol=1e-5)


def test_recent_popularity_needs_times() -> None:
    train = Interactions.build(np.array([0, 1]), np.array([0, 1]), 2, 2)
    with pytest.raises(ConfigError, match=r"recent = 0\.5 needs the time of each interaction"):
        popularity(train, 0.5)


def test_random_scores_are_spread_evenly_over_items_and_differ_between_users() -> None:
    train = make_town(400, 30).dataset.split.train
    model = Random(BipartiteGraph(train), Random.Config())
    model.initialise_(seed=0)
    scores = torch.from_numpy(model.scorer()(np.arange(400, dtype=np.int32)))
    first = torch.bincount(scores.argmax(1), minlength=30)
    assert first.sum() == 400
    chi_square = ((first - 400 / 30) ** 2 / (400 / 30)).sum()
    assert chi_square < 66  # the 99.99 % quantile with 29 degrees of freedom

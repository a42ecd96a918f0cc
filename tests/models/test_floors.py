from __future__ import annotations

import numpy as np
import torch

from ltocf.data.sources.town import make_town
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.popularity import Popularity
from ltocf.models.random import Random


def test_popularity_counts() -> None:
    train = make_town(50, 30).dataset.split.train
    model = Popularity(BipartiteGraph(train), Popularity.Config())
    model.initialise_(seed=0)
    scores = model.scorer()(np.array([4, 9], np.int32))
    assert scores[1].tolist() == train.item_degrees.tolist()


def test_random_scores_are_spread_evenly_over_items_and_differ_between_users() -> None:
    train = make_town(400, 30).dataset.split.train
    model = Random(BipartiteGraph(train), Random.Config())
    model.initialise_(seed=0)
    scores = model.scorer()(np.arange(400, dtype=np.int32))
    first = torch.bincount(scores.argmax(1), minlength=30)
    assert first.sum() == 400
    chi_square = ((first - 400 / 30) ** 2 / (400 / 30)).sum()
    assert chi_square < 66  # the 99.99 % quantile with 29 degrees of freedom

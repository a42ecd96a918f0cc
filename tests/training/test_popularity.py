"""Validation weighs popularity, and takes nothing of it unless it gains clearly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ltocf.config import BPR, RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.town import make_town
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.mf import MF
from ltocf.progress import OutOfTime
from ltocf.ranking.metrics import evaluate
from ltocf.scorers.dot import DotScorer
from ltocf.training.fitting import choose_epochs, fit_for
from ltocf.training.popularity import LADDER, fit_popularity_

USERS, ITEMS = 400, 60


def pairs(of_each: int, popular: bool, seed: int) -> Interactions:
    """Items that users drew: the first ones by far the most often, or all alike."""
    draw = np.random.default_rng(seed)
    chances = 1 / np.arange(1, ITEMS + 1) if popular else np.ones(ITEMS)
    chances = chances / chances.sum()
    items = [draw.choice(ITEMS, of_each, replace=False, p=chances) for _ in range(USERS)]
    users = np.repeat(np.arange(USERS), of_each)
    return Interactions.build(users, np.concatenate(items), USERS, ITEMS)


def undecided(train: Interactions, popularity: float | None = None) -> MF:
    """Vectors that know nothing."""
    config = MF.Config(dim=4, start="random", popularity=popularity)
    model = MF(BipartiteGraph(train), config)
    model.draw_(0)
    return model


def test_popularity_gets_a_large_weight_if_users_take_popular_items() -> None:
    model, held_out = undecided(pairs(6, True, 1)), pairs(2, True, 2)
    fit_popularity_(model, held_out, seed=0)
    assert float(model.popularity) in LADDER
    assert float(model.popularity) >= 1
    found = evaluate(model.scorer(), held_out, model.graph.interactions)
    plain = evaluate(model.scorer().with_popularity(0), held_out, model.graph.interactions)
    assert found["recall@20"] > 1.5 * plain["recall@20"]


def test_where_all_items_are_taken_alike_it_weighs_nothing() -> None:
    model = undecided(pairs(6, False, 1))
    fit_popularity_(model, pairs(2, False, 2), seed=0)
    assert float(model.popularity) == 0


def test_a_weight_that_is_given_stays() -> None:
    model = undecided(pairs(6, True, 1), popularity=0.3)
    fit_popularity_(model, pairs(2, True, 2), seed=0)
    assert float(model.popularity) == pytest.approx(0.3)


def settings(**train: object) -> RunConfig:
    return RunConfig(
        model={"name": "mf", "dim": 4, "start": "random"},
        loss=BPR(negatives=2),
        train=TrainConfig(epochs=1, learning_rate=1e-6, **train),
    )


def dataset() -> Dataset:
    train, valid = pairs(6, True, 1), pairs(2, True, 2)
    return Dataset("popular", Split(train, valid, valid.empty()))


def test_what_validation_chose_goes_into_the_fit_on_all_pairs() -> None:
    chosen = choose_epochs(dataset(), settings())
    assert float(chosen.model.popularity) >= 1
    whole = fit_for(chosen.epochs, chosen.dataset, settings(), like=chosen.model)
    assert float(whole.model.popularity) == float(chosen.model.popularity)


def test_test_pairs_weigh_nothing() -> None:
    data = dataset()
    data = replace(data, split=replace(data.split, valid=data.split.test, test=data.split.valid))
    for protocol in ("fixed", "best-test-epoch"):
        assert float(choose_epochs(data, settings(protocol=protocol)).model.popularity) == 0


def test_without_time_to_weigh_it_the_trained_model_is_kept() -> None:
    def ends(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        if stage == "weighing popularity":
            raise OutOfTime

    found = choose_epochs(dataset(), settings(), progress=ends)
    assert not found.complete
    assert float(found.model.popularity) == 0


def test_the_town_is_no_worse_on_validation() -> None:
    town = make_town(300, 120).dataset
    config = RunConfig(
        model={"name": "mf", "dim": 8}, loss=BPR(negatives=4), train=TrainConfig(epochs=2)
    )
    chosen = choose_epochs(town, config)
    train, valid = chosen.dataset.split.train, chosen.dataset.split.valid
    scorer = chosen.model.scorer()
    assert isinstance(scorer, DotScorer)
    weighed = evaluate(scorer, valid, train)
    plain = evaluate(scorer.with_popularity(0), valid, train)
    both = [metrics["recall@20"] + metrics["ndcg@20"] for metrics in (weighed, plain)]
    assert both[0] >= both[1]

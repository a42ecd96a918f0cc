"""Validation weighs popularity and recency, and takes nothing of either unless it gains clearly."""

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
from ltocf.models.lightgcn import LightGCN
from ltocf.models.mf import MF
from ltocf.progress import OutOfTime
from ltocf.ranking.metrics import evaluate
from ltocf.scorers.dot import DotScorer
from ltocf.training.fitting import choose_epochs, fit_for
from ltocf.training.weighing import LADDERS, weigh_

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
    weigh_(model, held_out, seed=0)
    assert float(model.popularity) in LADDERS["popularity"]
    assert float(model.popularity) >= 1
    found = evaluate(model.scorer(), held_out, model.graph.interactions)
    plain = evaluate(model.scorer().with_popularity(0), held_out, model.graph.interactions)
    assert found["recall@20"] > 1.5 * plain["recall@20"]


def test_where_all_items_are_taken_alike_it_weighs_nothing() -> None:
    model = undecided(pairs(6, False, 1))
    weigh_(model, pairs(2, False, 2), seed=0)
    assert float(model.popularity) == 0


def test_a_weight_that_is_given_stays() -> None:
    model = undecided(pairs(6, True, 1), popularity=0.3)
    weigh_(model, pairs(2, True, 2), seed=0)
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


def moved(seed: int, *, timed: bool = True) -> tuple[Interactions, Interactions]:
    """Everybody has five places of one town and then two of another, where the held-out ones are
    too."""
    draw = np.random.default_rng(seed)
    users, items, times = [], [], []
    for user in range(USERS):
        before, now = draw.permutation(2)
        places = [*(30 * before + draw.permutation(30)[:5]), *(30 * now + draw.permutation(30)[:4])]
        users += [user] * 9
        items += places
        times += range(9)
    all_users, all_items, when = np.array(users), np.array(items), np.array(times, np.int64)
    train, later = when < 7, when >= 7
    return (
        Interactions.build(
            all_users[train], all_items[train], USERS, ITEMS,
            timestamps=when[train] if timed else None,
        ),
        Interactions.build(all_users[later], all_items[later], USERS, ITEMS),
    )  # fmt: skip


def drawn(train: Interactions, **options: object) -> LightGCN:
    model = LightGCN(BipartiteGraph(train), LightGCN.Config(dim=4, layers=2, **options))
    model.draw_(0)
    return model


def test_histories_fade_where_people_have_moved() -> None:
    train, held_out = moved(0)
    model = drawn(train)
    before = evaluate(model.scorer(), held_out, train)
    weigh_(model, held_out, seed=0)
    assert float(model.recency) in LADDERS["recency"]
    found = evaluate(model.scorer(), held_out, train)
    assert found["recall@20"] > 1.2 * before["recall@20"]
    saved = drawn(train)
    saved.restore_(model.fitted_state())
    assert evaluate(saved.scorer(), held_out, train) == found


@pytest.mark.parametrize("given", [{"recency": 0.0}, {"popularity": 0.0}])
def test_histories_do_not_fade_if_that_or_popularity_is_given(given: dict[str, float]) -> None:
    train, held_out = moved(0)
    model = drawn(train, **given)
    weigh_(model, held_out, seed=0)
    assert float(model.recency) == 0 and model.history_weights.recency == 0


def test_without_times_nothing_fades() -> None:
    train, held_out = moved(0, timed=False)
    model = drawn(train)
    weigh_(model, held_out, seed=0)
    assert float(model.recency) == 0


def test_what_fades_is_taken_over_by_the_fit_on_all_pairs() -> None:
    train, held_out = moved(0)
    data = Dataset("moved", Split(train, held_out, held_out.empty()))
    config = settings().model_copy(update={"model": {"name": "lightgcn", "dim": 4, "layers": 2}})
    chosen = choose_epochs(data, config)
    whole = fit_for(chosen.epochs, data, config, like=chosen.model)
    assert float(whole.model.recency) == float(chosen.model.recency) > 0

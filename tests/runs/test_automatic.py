"""The automatic choice, on data where the right answer is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.config import RunConfig, TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.blend import BlendScorer
from ltocf.models.ltocf import LTOCF
from ltocf.models.scorer import Scorer
from ltocf.ode.times import TimePoints
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.recommender import Recommender
from ltocf.runs import automatic, candidates, costs, mixing
from ltocf.runs.automatic import choose_model
from ltocf.runs.candidates import Trial, try_candidate
from ltocf.runs.fitting import Fit
from ltocf.runs.mixing import Mix, fit_mix, pooled
from ltocf.runs.records import EpochRecord
from ltocf.runs.validation import with_validation
from ltocf.runs.yardsticks import verdict

AUTO = RunConfig(model={"name": "auto"})


def test_every_candidate_is_reported_and_one_is_chosen(hamlet: Dataset) -> None:
    told: list[tuple[object, ...]] = []
    choice = choose_model(AUTO, hamlet.split, 600, lambda *what: told.append(what))
    names = [row.tried.split()[0] for row in choice.rows[: len(candidates.CANDIDATES)]]
    assert names == list(candidates.CANDIDATES)
    assert sum(row.note.startswith("chosen") for row in choice.rows) == 1
    shares = [float(str(what[1])) for what in told]
    done = [share for share in shares if share.is_integer() and share]
    assert done == list(range(1, len(candidates.CANDIDATES) + 1))
    assert any(len(done) - 1 < share < len(done) for share in shares)  # LT-OCF as it trains
    build_model(
        BipartiteGraph(hamlet.split.train), choice.config.model_name, choice.config.model_options
    )
    assert choice.config.train.protocol == "fixed"


def test_a_bad_candidate_is_not_chosen(hamlet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "CANDIDATES", ("random", "rp3beta"))
    monkeypatch.setattr(automatic, "halves", lambda valid, seed: (valid, _nothing(valid)))
    assert choose_model(AUTO, hamlet.split, 600).config.model_name == "rp3beta"


def test_a_setting_holds_for_every_candidate_that_has_it(hamlet: Dataset) -> None:
    config = RunConfig(model={"name": "auto", "recency": 0.4})
    chosen = choose_model(config, hamlet.split, 0).config
    assert chosen.model_options["recency"] == 0.4
    rows = choose_model(config, hamlet.split, 600).rows
    assert all("recency=0.4" in row.tried for row in rows if row.tried.startswith("chebycf"))
    with pytest.raises(ConfigError, match="'tempo' is no setting of anything that 'auto' tries"):
        choose_model(RunConfig(model={"name": "auto", "tempo": 1}), hamlet.split, 0)


@pytest.mark.parametrize("train", [{"epochs": 0}, {"epochs": 3, "evaluate_every": 2}])
def test_a_training_of_any_schedule_is_tried(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch, train: dict[str, int]
) -> None:
    monkeypatch.setattr(automatic, "CANDIDATES", ("ltocf",))
    config = AUTO.model_copy(update={"train": TrainConfig(**train)})
    chosen = choose_model(config, hamlet.split, 0).config
    assert chosen.model_name == "ltocf"
    assert chosen.train.epochs is not None and chosen.train.epochs <= train["epochs"]


def test_a_spent_budget_tries_the_cheapest_and_says_what_it_left_out(hamlet: Dataset) -> None:
    choice = choose_model(AUTO, hamlet.split, 0)
    assert choice.config.model_name == candidates.CANDIDATES[0]
    left_out = [row for row in choice.rows if row.note.startswith("not tried: about ")]
    assert len(left_out) == len(candidates.CANDIDATES) - 1


def test_a_closed_forms_cost_is_that_of_a_part_and_what_it_grows_by(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "SMALL", 0)
    first = costs.PARTS[0]
    monkeypatch.setattr(
        costs,
        "_solving_seconds",
        lambda name, train, part: 100.0 if part == first else 3.0 + 10.0 * part,
    )
    # Not a hundred seconds, which compiling took; once to be tried and once on all pairs.
    assert costs.estimated_seconds("chebycf", hamlet.split, AUTO) == pytest.approx(2 * (3 + 10))


def test_a_closed_form_searches_its_settings_while_there_is_time(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (-1.0, -0.4, 0.0, 0.2, 0.4)
    monkeypatch.setitem(candidates.SEARCHED, "rp3beta", {"beta": values})
    cut = with_validation(hamlet.split, AUTO.train, 0)

    def tried(seconds: float, **options: object) -> Trial:
        config = RunConfig(model={"name": "auto", **options})
        return try_candidate("rp3beta", cut, cut.valid, config, 0.0, seconds)

    assert "beta" not in tried(0).options
    found = tried(600)
    recency = found.options.get("recency", 0.0)
    each = [tried(600, beta=beta, recency=recency).merit for beta in values]
    place = values.index(found.options.get("beta", 0.4))
    assert found.merit == each[place]
    assert found.merit >= max(each[max(place - 1, 0) : place + 2])  # a top, seen from both sides
    assert len(set(each)) > 1


def test_recency_is_chosen_where_people_move(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic, "CANDIDATES", ("rp3beta", "gfcf"))
    draw = np.random.default_rng(0)
    moves = []  # each one takes ten items of one district of twenty, then ten of another
    for user in range(150):
        for half, district in enumerate(draw.choice(12, 2, replace=False)):
            for step, item in enumerate(draw.choice(20, 10, replace=False)):
                moves.append((user, 20 * district + item, 10 * half + step))
    users, items, times = np.array(moves).T
    train = Interactions.build(users, items, 150, 240, times)
    split = replace(
        hamlet.split, train=train, valid=_nothing(train), test=_nothing(train), kind="given"
    )
    model = choose_model(AUTO, split, 600).config.model
    parts = model.get("parts", [{"options": model}])
    assert all(part["options"]["recency"] in candidates.RECENCIES for part in parts)


@pytest.mark.parametrize(("start", "peak"), [(0.4, 1.0), (0.7, 0.7), (1.4, 1.4), (0.2, 1.4)])
def test_trainings_climb_to_the_recency_they_like_best(
    hamlet: Dataset, start: float, peak: float
) -> None:
    model = build_model(BipartiteGraph(hamlet.split.train), "ltocf", {})
    tried = []

    def fitted(options: dict[str, Any]) -> Fit:
        tried.append(options["recency"])
        assert options["dim"] == 8
        value = 1 - abs(options["recency"] - peak)
        found = {"recall@20": value, "ndcg@20": value}
        return Fit(model, hamlet, [EpochRecord(1, 0.5, 1.0, metrics=found)])

    found = candidates._climb({"recency": start, "dim": 8}, fitted)
    assert found == {"recency": peak}
    assert tried == [r for r in candidates.RECENCIES if start <= r][: len(tried)]
    assert (
        len(tried) <= 1 + candidates.RECENCIES.index(peak) - candidates.RECENCIES.index(start) + 1
    )


@pytest.mark.parametrize("recency", [0.0, 1.4])  # 1.4 is the highest: none above it is tried
def test_learned_times_are_shortened_for_all_pairs(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch, recency: float
) -> None:
    lessons, trainings = [], []

    def learn(model: LTOCF, held_out: Interactions, train: TrainConfig, *_: Any, **__: Any) -> None:
        lessons.append(train.epochs)
        model.times = TimePoints([0.75, 1.5, 2.25], 3.0, learn=False)

    def fitted(dataset: Dataset, config: RunConfig, **_: object) -> Fit:
        trainings.append(config.train.epochs)
        assert config.model_options["end_time"] == 3.0
        model = build_model(BipartiteGraph(dataset.split.train), "ltocf", config.model_options)
        model.initialise_(0)
        return Fit(model, dataset, [EpochRecord(1, 0.5, 1.0)])

    monkeypatch.setattr(candidates, "learn_depth_", learn)
    monkeypatch.setattr(candidates, "fit", fitted)
    cut = with_validation(hamlet.split, AUTO.train, 0)
    trial = try_candidate("ltocf", cut, cut.valid, AUTO, recency, 600)
    factor = (len(cut.train) / len(cut.seen)) ** (1 / 3)
    assert factor < 1
    assert lessons == [trainings[-1]]  # for as long as the model will train, not for a short trial
    assert trial.options["end_time"] == pytest.approx(3.0 * factor)
    assert trial.options["times"] == pytest.approx([factor * t for t in (0.75, 1.5, 2.25)])
    assert trial.options["learn_times"] is False


class _Fixed(Scorer):
    """Scores that are given."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def __call__(self, users: Rows) -> Tensor:
        return self.scores[torch.from_numpy(users).long()]

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Tensor:
        raise NotImplementedError

    similar_items = similar_users = __call__


def _randoms(n: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(200, 300, generator=generator) for _ in range(n)]


def _best_of(truth: Tensor) -> Interactions:
    users, items = np.repeat(np.arange(200), 10), truth.topk(10).indices.numpy().ravel()
    return Interactions.build(users, items, 200, 300)


def _mixed(scorers: list[_Fixed], wanted: Interactions, most: int = 3) -> Mix:
    return fit_mix(pooled(scorers, wanted, _nothing(wanted)), most)


def test_a_mix_takes_the_parts_that_know_different_things() -> None:
    truth, *noise = _randoms(4)
    scorers = [_Fixed(truth + noise[0]), _Fixed(truth + noise[1]), _Fixed(noise[2])]
    wanted = _best_of(truth)
    first, second = _mixed(scorers, wanted).items()
    assert {first[0], second[0]} == {0, 1}  # the third knows nothing
    assert first[1] == 1 and 0.4 < second[1] < 2.0


def test_a_part_of_a_mix_makes_way_for_a_better_one() -> None:
    a, b, c, noise = _randoms(4)
    scorers = [_Fixed(1.5 * a), _Fixed(b + c + 0.8 * noise), _Fixed(b), _Fixed(c)]
    wanted = _best_of(1.5 * a + b + c)
    assert list(_mixed(scorers, wanted, most=2)) == [0, 1]
    truth = {0: 1, 2: 2 / 3, 3: 2 / 3}
    assert _mixed(scorers, wanted) == pytest.approx(truth, rel=0.2)


def test_scores_that_stand_out_far_get_a_small_weight() -> None:
    truth, noise, other, hint = _randoms(4)
    told = (truth > 2.8) & (hint > 1)  # a few of the best, and of nothing else anything
    loud = _Fixed(1e-2 * other + told)
    wanted = _best_of(truth)
    assert _mixed([_Fixed(truth + noise), loud], wanted)[1] < 0.1


@pytest.mark.parametrize("n_items", [90, 400])  # a pool that is everything, and one that is not
def test_a_pool_of_the_best_items_ranks_as_all_items_do(n_items: int) -> None:
    generator = torch.Generator().manual_seed(1)
    scorers = [_Fixed(torch.randn(300, n_items, generator=generator)) for _ in range(3)]
    pairs = torch.rand(300, n_items, generator=generator)
    seen, wanted = (
        Interactions.build(users, items, 300, n_items)
        for low in (0.1, 0.5)
        for users, items in [np.nonzero(((pairs > low) & (pairs < low + 0.1)).numpy())]
    )
    some = wanted.select(wanted.users % 3 == 0)
    pool = pooled(scorers, wanted, seen).of(some)
    mixed, blend = pool.total({0: 1.0, 1: 0.7, 2: 0.4}), BlendScorer(scorers, [1.0, 0.7, 0.4])
    for k in (20, mixing.DEPTH):
        of_all_items = evaluate(blend, some, seen, ks=(k,))
        of_pool = pool.metrics(mixed, k)
        assert of_pool == pytest.approx({name: of_all_items[name] for name in of_pool}, rel=1e-6)


def test_all_users_weigh_a_blend_that_half_of_them_found_better(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighing: list[int] = []

    def weighed(pool: mixing.Pool) -> Mix:
        weighing.append(len(pool.users))
        return {0: 1.0, 1: 0.5 if len(weighing) == 1 else 0.25}

    def decided(alone: float) -> list[float]:
        """The weights of what is chosen, where the best part alone and any mix are so good."""
        weighing.clear()
        merits = iter([{"recall@20": 0.3, "ndcg@20": 0.3}, {"recall@20": alone, "ndcg@20": 0.3}])
        monkeypatch.setattr(mixing.Pool, "metrics", lambda self, scores: next(merits))
        parts = choose_model(AUTO, hamlet.split, 600).config.model_options.get("parts", [])
        return [part["weight"] for part in parts]

    monkeypatch.setattr(automatic, "CANDIDATES", ("rp3beta", "gfcf"))
    monkeypatch.setattr(automatic, "fit_mix", weighed)
    n_users = int(
        (with_validation(hamlet.split, AUTO.train, 0, fewest=1).valid.user_degrees > 0).sum()
    )
    assert decided(alone=0.2) == [1.0, 0.25]
    assert weighing == [n_users // 2, n_users]
    assert decided(alone=0.4) == []
    assert weighing == [n_users // 2]


def _nothing(pairs: Interactions) -> Interactions:
    return pairs.select(np.zeros(len(pairs), dtype=bool))


def test_python_and_shell_take_auto(hamlet, ltocf, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(automatic, "CANDIDATES", ("rp3beta", "gfcf"))
    assert Recommender("auto", budget=60).fit(hamlet).config.model_name in (
        "rp3beta",
        "gfcf",
        "blend",
    )
    hamlet.save(tmp_path / "data")
    run = tmp_path / "run"
    code, out, err = ltocf("train", tmp_path / "data", "--model", "auto", "-o", run, "--json")
    assert code == 0, err
    tried = json.loads(out)["tried"]
    assert [row["tried"].split()[0] for row in tried[:2]] == ["rp3beta", "gfcf"]
    assert json.loads((run / "auto.json").read_text()) == tried


def test_a_run_is_compared_with_what_takes_seconds() -> None:
    ours = {"recall@20": 0.2}
    others = {"popularity": {"recall@20": 0.1}, "ease": {"recall@20": 0.19}}
    line = "on the same split, Recall@20 of what takes seconds: popularity 0.1000, ease 0.1900"
    assert verdict(ours, others) == line
    better = others | {"ease": {"recall@20": 0.21}}
    assert verdict(ours, better).endswith("'auto' would probably do better than this run")

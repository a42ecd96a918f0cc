"""`--model auto`: fit the fast strong candidates, compare them on validation, keep the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ltocf.config import RunConfig
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split, hold_out_validation
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.blend import BlendScorer
from ltocf.models.scorer import Scorer
from ltocf.ranking.metrics import evaluate

Options = dict[str, Any]
SELECT_BY = "recall@20"
MOST_USERS = 4000  # of validation, drawn at random: enough to tell the candidates apart
# From the cheapest to the dearest, so that a small budget still compares different kinds.
CANDIDATES: tuple[tuple[str, Options], ...] = (
    ("rp3beta", {}),
    ("turbocf", {}),
    ("gfcf", {}),
    ("sparse_ease", {}),
    ("chebycf", {}),
    ("bspm", {}),
)
RECENCIES = (0.35, 0.7)  # tried of each candidate where times are known
BLEND_WEIGHTS = ((1.0, 0.5), (1.0, 1.0), (0.5, 1.0))


class Trial(NamedTuple):
    name: str
    options: Options
    scorer: Scorer
    metric: float


def choose_model(
    split: Split,
    budget_seconds: float,
    report: Callable[[str], None] = lambda line: None,
    *,
    seed: int = 0,
) -> tuple[str, Options]:
    """The name and the settings of the candidate with the best Recall@20 on validation.

    Where times are known, validation is each user's latest tenth; where not, the split's validation
    set if it has one, or else a random tenth. With times each candidate is also tried with some
    recencies. The first two always run; no other is started once the budget is spent. The two best
    are also tried as a blend.
    """
    start = time.perf_counter()
    split = with_validation(split, seed)
    graph, valid = BipartiteGraph(split.train), sample_users(split.valid, seed)
    trials: list[Trial] = []
    for name, options in CANDIDATES:
        elapsed = time.perf_counter() - start
        if elapsed > budget_seconds and len(trials) >= 2:
            report(f"{name}: not tried, {elapsed:.0f} of {budget_seconds:.0f} seconds are spent")
            continue
        best = max(_fitted(graph, name, options, seed, split, valid), key=lambda t: t.metric)
        trials.append(best)
        seconds = time.perf_counter() - start - elapsed
        report(
            f"{_label(best)}: {SELECT_BY} {best.metric:.4f} on validation, {seconds:.1f} seconds"
        )
    trials += _blends(sorted(trials, key=lambda trial: -trial.metric)[:2], split, valid, report)
    best = max(trials, key=lambda trial: trial.metric)
    report(f"chosen: {_label(best)}, with the best {SELECT_BY} on validation, {best.metric:.4f}")
    return best.name, best.options


def settle(
    config: RunConfig, split: Split, budget_seconds: float, report: Callable[[str], None]
) -> RunConfig:
    """`config` with the chosen model in place of "auto", to be fitted on all of train."""
    name, options = choose_model(split, budget_seconds, report, seed=config.seed)
    train = config.train.model_copy(update={"protocol": "fixed"})
    return config.model_copy(update={"model": {"name": name} | options, "train": train})


def _fitted(
    graph: BipartiteGraph,
    name: str,
    options: Options,
    seed: int,
    split: Split,
    valid: Interactions,
) -> Iterator[Trial]:
    """The candidate, solved once and tried with each recency that it can have."""
    model = build_model(graph, name, options)
    model.initialise_(seed)
    scorer = model.scorer()
    yield _try(name, options, scorer, split, valid)
    if split.train.timestamps is not None and "recency" in model.Config.model_fields:
        for recency in RECENCIES:
            if (recent := scorer.with_recency(recency)) is not None:
                yield _try(name, options | {"recency": recency}, recent, split, valid)


def _label(trial: Trial) -> str:
    recency = trial.options.get("recency")
    return f"{trial.name} with recency {recency}" if recency else trial.name


def _try(name: str, options: Options, scorer: Scorer, split: Split, valid: Interactions) -> Trial:
    return Trial(name, options, scorer, evaluate(scorer, valid, split.train)[SELECT_BY])


def _blends(
    best: list[Trial], split: Split, valid: Interactions, report: Callable[[str], None]
) -> list[Trial]:
    trials = []
    for weights in BLEND_WEIGHTS:
        parts = [
            {"model": trial.name, "weight": weight, "options": trial.options}
            for trial, weight in zip(best, weights, strict=True)
        ]
        scorer = BlendScorer([trial.scorer for trial in best], weights)
        trials.append(_try("blend", {"parts": parts}, scorer, split, valid))
        mixed = " + ".join(f"{w} {_label(t)}" for t, w in zip(best, weights, strict=True))
        report(f"blend of {mixed}: {SELECT_BY} {trials[-1].metric:.4f} on validation")
    return trials


def with_validation(split: Split, seed: int) -> Split:
    """A split to choose by. Where times are known, a validation set that is there gives way: it may
    be random, and a random one cannot tell what recency is good for."""
    whole = split.seen
    latest = whole.timestamps is not None
    if len(split.valid) and not latest:
        return split
    nothing = split.valid.select(np.zeros(len(split.valid), dtype=bool))
    merged = replace(split, train=whole, valid=nothing)
    return hold_out_validation(merged, seed=seed, latest=latest)


def sample_users(valid: Interactions, seed: int) -> Interactions:
    users = np.flatnonzero(valid.user_degrees)
    if len(users) <= MOST_USERS:
        return valid
    drawn = np.random.default_rng(seed).choice(users, MOST_USERS, replace=False)
    return valid.select(np.isin(valid.users, drawn))

"""`--model auto`: try strong candidates on validation, blend the best, keep what wins."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from ltocf.config import RunConfig
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.errors import DataError
from ltocf.progress import Progress, silent
from ltocf.runs.candidates import CANDIDATES, Trial, check_given, try_candidate
from ltocf.runs.costs import estimated_seconds, fits
from ltocf.runs.mixing import fit_mix, pooled
from ltocf.runs.records import merit
from ltocf.runs.validation import with_validation

# Of validation, drawn at random: enough to tell the candidates apart, and to weigh parts by half.
MOST_USERS, MOST_TO_MIX = 4000, 10_000
SEARCHING = 0.04  # of the budget, for the settings of each closed form


@dataclass(frozen=True)
class Row:
    """A line of the report: what was tried, how long it took, how good it was, and what became of
    it."""

    tried: str
    seconds: float
    recall: float | None
    ndcg: float | None
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """What won, as settings to be fitted on all of train, and the report of all that was tried."""

    config: RunConfig
    rows: list[Row]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and cells, to be printed."""
        cells = [
            [
                row.tried,
                f"{row.seconds:.1f}",
                "" if row.recall is None else f"{row.recall:.4f}",
                "" if row.ndcg is None else f"{row.ndcg:.4f}",
                row.note,
            ]
            for row in self.rows
        ]
        return ["tried", "seconds", "Recall@20", "NDCG@20", ""], cells

    def as_json(self) -> list[dict[str, object]]:
        return [asdict(row) for row in self.rows]


def choose_model(
    config: RunConfig, split: Split, budget_seconds: float, progress: Progress = silent
) -> Choice:
    """`config` with the best model found in place of "auto". A setting of a model in `config` holds
    for every candidate that has it.

    Validation pairs are cut as the test pairs were. A candidate whose trial and final fit would not
    end within the budget, by a measurement on a part of the users, is passed over; the cheapest is
    always tried. Half of the validation users fit the weights of a blend of up to three, and the
    other half judge whether it is better; if so, all of them fit its weights.
    """
    started = time.perf_counter()
    check_given(config)
    cut = with_validation(split, config.train, config.seed, fewest=1)
    if not len(cut.valid):
        raise DataError("too few interactions to compare models on; name one instead of 'auto'")
    valid = sample_users(cut.valid, config.seed, MOST_USERS)
    trials, rows, recency = list[Trial](), list[Row](), 0.0
    for done, name in enumerate(CANDIDATES):
        why = _passed_over(name, cut, config, trials, budget_seconds, started)
        if why:
            rows.append(Row(name, 0.0, None, None, why))
        else:
            watch = _within(progress, done, name)
            searching = SEARCHING * budget_seconds
            trial = try_candidate(name, cut, valid, config, recency, searching, watch)
            trials.append(trial)
            rows.append(Row(trial.label, trial.seconds, trial.recall, trial.ndcg))
            recency = max(trials, key=lambda t: t.merit).options.get("recency", 0.0)
        recall = rows[-1].recall
        told = rows[-1].note if recall is None else f"Recall@20 {recall:.4f}"
        progress("comparing", done + 1, len(CANDIDATES), f"{rows[-1].tried}: {told}")
    return _decide(config, cut, trials, rows)


def _within(progress: Progress, before: int, name: str) -> Progress:
    """Of one candidate that takes long: what it is doing, as a share of its place among all. It may
    train more than once; the share never goes back."""
    reached = 0.0

    def watch(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        nonlocal reached
        reached = max(reached, min(done / total, 0.99) if total else 0.0)
        progress("comparing", before + reached, len(CANDIDATES), f"{name}: {stage} {note}".strip())

    return watch


def _passed_over(
    name: str,
    split: Split,
    config: RunConfig,
    trials: list[Trial],
    budget: float,
    started: float,
) -> str:
    """Why a candidate is not tried, or nothing."""
    if not fits(name, split):
        return "not tried: its matrix would be too large"
    if not trials:
        return ""
    left = budget - (time.perf_counter() - started)
    others = sorted(trials, key=lambda trial: -trial.merit)[:2]  # parts of a blend with it
    final = sum(trial.final_seconds for trial in others)
    cost = estimated_seconds(name, split, config) if left > 0 else 0.0
    if left <= 0 or cost + final > left:
        return f"not tried: about {cost + final:.0f} seconds, {max(left, 0):.0f} are left"
    return ""


def _decide(config: RunConfig, split: Split, trials: list[Trial], rows: list[Row]) -> Choice:
    best = max(trials, key=lambda trial: trial.merit)
    held_out = sample_users(split.valid, config.seed, MOST_TO_MIX)
    first, second = halves(held_out, config.seed)
    if len(trials) > 1 and len(first) and len(second):
        started = time.perf_counter()
        pool = pooled([trial.scorer for trial in trials], held_out, split.train)
        mix, judges = fit_mix(pool.of(first)), pool.of(second)
        judged = judges.metrics(judges.total(mix))
        alone = judges.metrics(judges.scores[trials.index(best)])
        gain = merit(judged) / max(merit(alone), 1e-9) - 1
        if len(mix) > 1:
            mix = fit_mix(pool) if gain > 0 else mix  # all of them weigh better than half of them
            parts = [trials[part] for part in mix]
            weighed = list(zip(parts, mix.values(), strict=True))
            label = " + ".join(f"{weight:.3g} {part.label}" for part, weight in weighed)
            above = f"chosen: {gain:.1%} above" if gain > 0 else "no better than"
            note = f"{above} {best.name} when half of the users weigh and the others judge"
            seconds = time.perf_counter() - started
            rows.append(Row(label, seconds, judged["recall@20"], judged["ndcg@20"], note))
            if gain > 0:
                options = [
                    {"model": part.name, "weight": weight, "options": part.options}
                    for part, weight in weighed
                ]
                return Choice(_final(config, {"name": "blend", "parts": options}, parts), rows)
    rows = [
        Row(**(asdict(row) | {"note": "chosen: the best on validation"}))
        if row.tried == best.label
        else row
        for row in rows
    ]
    return Choice(_final(config, {"name": best.name} | best.options, [best]), rows)


def _final(config: RunConfig, model: Mapping[str, object], parts: list[Trial]) -> RunConfig:
    changes: dict[str, object] = {"protocol": "fixed"}
    chosen = [part.epochs for part in parts if part.epochs is not None]
    if chosen:
        changes["epochs"] = chosen[0]
    train = config.train.model_copy(update=changes)
    return config.model_copy(update={"model": dict(model), "train": train})


def sample_users(valid: Interactions, seed: int, most: int) -> Interactions:
    users = np.flatnonzero(valid.user_degrees)
    if len(users) <= most:
        return valid
    drawn = np.random.default_rng(seed).choice(users, most, replace=False)
    return valid.select(np.isin(valid.users, drawn))


def halves(valid: Interactions, seed: int) -> tuple[Interactions, Interactions]:
    """The pairs of one half of the users at random, and those of the other."""
    users = np.random.default_rng(seed).permutation(np.flatnonzero(valid.user_degrees))
    chosen = np.isin(valid.users, users[: len(users) // 2])
    return valid.select(chosen), valid.select(~chosen)

"""Compare runs on the same test users; a paired bootstrap distinguishes differences from chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltocf.data.splits import Split
from ltocf.errors import ConfigError, DataError
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, PerUser, beyond_at, evaluate_users
from ltocf.runs.run import load_run
from ltocf.scorers.complete import complete
from ltocf.training.protocol import question

BLUE = "#2b6cb0"
AT_ONCE = 2**22  # resampled users in memory


@dataclass(frozen=True)
class Difference:
    """How far a run's metric is above the first run's, and how certain that is."""

    metric: str
    difference: float
    low: float  # the middle 95 % of the bootstrap
    high: float
    p: float  # two-sided: the probability of a difference this large by chance alone
    better: int  # users for whom it is better, and worse; for the rest it is the same
    worse: int


@dataclass(frozen=True)
class Comparison:
    """A comparison of runs with the first one. Where seeds are averaged, what is called a run here
    are several that differ in their seed alone."""

    runs: list[str]
    users: int
    resamples: int
    metrics: list[dict[str, float]]  # of each run
    differences: list[list[Difference]]  # of each run but the first
    beyond: list[dict[str, float]] = field(default_factory=list)  # of each run: not by user
    seeds: list[int] = field(default_factory=list)  # of each run: how many, where averaged
    spreads: list[dict[str, float]] = field(default_factory=list)  # standard deviations over seeds

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(
    paths: Sequence[str | Path],
    ks: Sequence[int] = (20,),
    names: Sequence[str] = ("recall", "ndcg"),
    *,
    resamples: int = 2000,
    seed: int = 0,
    average_seeds: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Test metrics of each run, and their differences from the first with a paired bootstrap over
    users. Runs that were trained or tested on different pairs are refused.

    With `average_seeds`, runs that differ in their seed alone count as one, by the mean of each
    user's metrics, and the standard deviations over seeds are given too."""
    if len(paths) < 2:
        raise ConfigError("a comparison needs two runs or more")
    places = list(map(Path, paths))
    first: Split | None = None
    found: list[PerUser] = []
    beyond: list[Metrics] = []
    recipes: list[str] = []
    for done, path in enumerate(places):
        run, model = load_run(path)
        split = run.dataset.split
        first = first or split
        _refuse_others(first, split, places[0], path)
        asked = question(complete(model.scorer(), model.people), split)
        likeness = run.dataset.catalogue.likeness
        values, listed = evaluate_users(*asked, ks, likeness=likeness)
        beyond.append(beyond_at(listed, asked.seen, asked.wanted) | _diversity(values))
        found.append(_chosen(values, ks, names))
        recipes.append(run.config.model_dump_json(exclude={"seed", "versions"}))
        progress("testing", done + 1, len(paths))
    names_of_runs, seeds, spreads = [str(path) for path in places], list[int](), list[Metrics]()
    if average_seeds:
        sides = [
            [place for place, one in enumerate(recipes) if one == recipe]
            for recipe in dict.fromkeys(recipes)
        ]
        if len(sides) < 2:
            raise ConfigError(
                "these runs differ in their seed alone; leave out average_seeds (--average-seeds)"
            )
        names_of_runs = [names_of_runs[side[0]] for side in sides]
        seeds = [len(side) for side in sides]
        spreads = [_spread([found[place] for place in side]) for side in sides]
        found = [_mean([found[place] for place in side]) for side in sides]
        beyond = [_mean([beyond[place] for place in side]) for side in sides]
    differences = [
        bootstrap(found[0], other, resamples=resamples, seed=seed, progress=progress)
        for other in found[1:]
    ]
    means = [{name: float(v.mean()) for name, v in values.items()} for values in found]
    users = len(next(iter(found[0].values())))
    return Comparison(names_of_runs, users, resamples, means, differences, beyond, seeds, spreads)


def _mean(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By name, over runs."""
    return {name: np.mean([one[name] for one in values], axis=0) for name in values[0]}


def _spread(values: Sequence[PerUser]) -> Metrics:
    """The sample standard deviation of the users' mean over runs; 0 for one run."""
    means = {name: [float(one[name].mean()) for one in values] for name in values[0]}
    return {name: float(np.std(m, ddof=1)) if len(m) > 1 else 0.0 for name, m in means.items()}


def _diversity(values: PerUser) -> Metrics:
    return {name: float(v.mean()) for name, v in values.items() if name.startswith("diversity@")}


def _refuse_others(first: Split, split: Split, one: Path, other: Path) -> None:
    for path, part in ((one, first), (other, split)):
        if not len(part.test):
            raise DataError(f"{path}: has no test pairs, so there is nothing to compare")
    for name in ("test", "seen"):
        ours, theirs = getattr(first, name), getattr(split, name)
        same_ids = ours.user_ids == theirs.user_ids and ours.item_ids == theirs.item_ids
        if not same_ids or ours.fingerprint != theirs.fingerprint:
            what = "tested" if name == "test" else "trained"
            raise DataError(
                f"{other}: was {what} on other pairs than {one}; train both on the same data set"
            )


def _chosen(values: PerUser, ks: Sequence[int], names: Sequence[str]) -> PerUser:
    known = list(dict.fromkeys(name.partition("@")[0] for name in values))
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown metric {name!r}; choose one of: {', '.join(known)}")
    return {f"{name}@{k}": values[f"{name}@{k}"] for k in ks for name in names}


def bootstrap(
    first: PerUser,
    other: PerUser,
    *,
    resamples: int,
    seed: int,
    progress: Progress = silent,
) -> list[Difference]:
    """Draw samples of the users with replacement, and average both runs over the same users."""
    gaps = np.stack([other[name] - first[name] for name in first], axis=1)  # (users, metrics)
    users = len(gaps)
    rng = np.random.default_rng(seed)
    at_once = max(1, AT_ONCE // users)
    drawn: list[NDArray[np.float64]] = []
    for start in range(0, resamples, at_once):
        n = min(at_once, resamples - start)
        rows = rng.integers(users, size=(n, users))
        counts = np.bincount(
            (rows + np.arange(n)[:, None] * users).ravel(), minlength=n * users
        ).reshape(n, users)
        drawn.append(counts @ gaps / users)
        progress("resampling", start + n, resamples)
    means = np.concatenate(drawn)  # (resamples, metrics)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    # Twice the smaller tail. The observed difference counts as one more draw, since no finite
    # number of draws can show that p = 0.
    tails = np.minimum((means <= 0).sum(0), (means >= 0).sum(0))
    p = np.minimum(1, 2 * (tails + 1) / (resamples + 1))
    return [
        Difference(
            name,
            float(gaps[:, i].mean()),
            float(low[i]),
            float(high[i]),
            float(p[i]),
            int((gaps[:, i] > 0).sum()),
            int((gaps[:, i] < 0).sum()),
        )
        for i, name in enumerate(first)
    ]


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw each difference from the first run with its interval, which may or may not contain 0."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ltocf.pictures.style import save_picture

    names = list(comparison.metrics[0])
    others = comparison.runs[1:]
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(names) * len(others)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    labels = []
    for place, (run, rows) in enumerate(zip(others, comparison.differences, strict=True)):
        for i, row in enumerate(rows):
            y = place * len(names) + i
            labels.append(f"{row.metric}  {run}" if len(others) > 1 else row.metric)
            axes.plot([row.low, row.high], [y, y], color=BLUE, linewidth=2)
            axes.plot(row.difference, y, "o", color=BLUE)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    what = f"{others[0]} less {comparison.runs[0]}" if len(others) == 1 else "difference"
    axes.set(xlabel=f"{what}, 95 % interval over {comparison.users:,} users")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, axis="x")
    save_picture(figure, path)

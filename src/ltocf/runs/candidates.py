"""What `auto` tries: models with settings that search themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from ltocf.models.ltocf import LTOCF, depth_factor
from ltocf.models.scorer import Scorer
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.runs.climbing import Options, Place, climb, paths_from
from ltocf.runs.fitting import Fit, fit
from ltocf.runs.records import merit
from ltocf.runs.refit import chosen_epochs

# From the cheapest to the dearest, so that a small budget still compares different kinds.
CANDIDATES = (
    "rp3beta", "turbocf", "gfcf", "ease", "sparse_ease", "chebycf", "bspm", "ltocf",
)  # fmt: skip
RECENCIES = (0.2, 0.4, 0.7, 1.0, 1.4)  # tried where times are known
# What is searched of each closed form, one setting after another, from its default or START on.
SEARCHED: dict[str, dict[str, tuple[Any, ...]]] = {
    "rp3beta": {"beta": (0.0, 0.2, 0.4, 0.6, 0.8), "alpha": (0.6, 0.8, 1.0, 1.3)},
    "turbocf": {
        "power": (0.3, 0.5, 0.7, 1.0),
        "alpha": (0.4, 0.5, 0.6, 0.7, 0.8),
        "filter": ("linear", "second"),
    },
    "gfcf": {"ideal_weight": (0.0, 0.1, 0.3, 0.6, 1.0)},
    "ease": {"l2": (20.0, 80.0, 200.0, 500.0, 1500.0, 5000.0)},
    "sparse_ease": {"l2": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)},
    "chebycf": {"degree_power": (0.2, 0.3, 0.4, 0.5, 0.6), "ideal_weight": (0.0, 0.1, 0.2, 0.4)},
    "bspm": {"end_time": (1.0, 1.5, 2.0, 2.5, 3.0), "ideal_weight": (0.0, 0.1, 0.2, 0.4)},
}
START = {"ease": {"l2": 500.0}}  # where there may be no time to search, and the default is low
FEW, MOST_USERS = 1000, 4000  # of validation: enough to tell settings apart, and candidates
EPOCHS_FOR_SETTINGS, RECENCIES_TRAINED = 6, 3  # of a training that tells one from another


@dataclass(frozen=True)
class Trial:
    """One candidate at its best settings, fitted to train and tried on validation."""

    name: str
    options: Options
    scorer: Scorer
    recall: float
    ndcg: float
    seconds: float
    final_seconds: float  # what a fit with the settings found will take
    epochs: int | None = None  # to train for on all pairs, of a model that is trained

    @property
    def merit(self) -> float:
        return merit({"recall@20": self.recall, "ndcg@20": self.ndcg})

    @property
    def label(self) -> str:
        searched = {"recency", "end_time", *SEARCHED.get(self.name, {})} & self.options.keys()
        shown = ((key, self.options[key]) for key in sorted(searched))
        settings = (f"{key}={v:.4g}" if isinstance(v, float) else f"{key}={v}" for key, v in shown)
        return " ".join([self.name, *settings])


class Cuts(NamedTuple):
    """Where settings are searched, and where what was found is fitted again and judged: the same
    cut, or one that leaves more to learn from (docs/any-data.md)."""

    searching: Split
    judging: Split

    def judged(self, scorer: Scorer, seed: int) -> Metrics:
        valid = self.judging.valid
        users = testable_users(valid, MOST_USERS, seed)
        return evaluate(scorer, valid, self.judging.train, users=users)


def try_candidate(
    name: str,
    cuts: Cuts,
    config: RunConfig,
    recency: float,
    seconds: float,
    progress: Progress = silent,
) -> Trial:
    """The candidate at the settings that validation likes best. A closed form searches them for so
    many seconds; LT-OCF, which has to be trained for each, begins with the recency that closed
    forms like best and, in short trainings, tries higher ones."""
    if name == "ltocf":
        return _trained(cuts, config, recency, progress)
    return _solved(name, cuts, config, seconds, progress)


def given_to(name: str, config: RunConfig) -> Options:
    """What the user has settled of a candidate: each has what it knows of."""
    fields = MODELS[name].Config.model_fields
    return {key: value for key, value in config.model_options.items() if key in fields}


def check_given(config: RunConfig) -> None:
    known = {key for name in CANDIDATES for key in given_to(name, config)}
    for key in config.model_options:
        if key not in known:
            raise ConfigError(f"{key!r} is no setting of anything that 'auto' tries")


@dataclass(frozen=True)
class _Solved(Place):
    scorer: Scorer


def _solved(name: str, cuts: Cuts, config: RunConfig, seconds: float, progress: Progress) -> Trial:
    """The best recency, then the best of each setting in turn, as long as there is time."""
    started = time.perf_counter()
    split, given = cuts.searching, given_to(name, config)
    graph, few = BipartiteGraph(split.train), testable_users(split.valid, FEW, config.seed)

    def scorer(graph: BipartiteGraph, options: Options) -> Scorer:
        model = build_model(graph, name, options)
        model.initialise_(config.seed)
        return model.scorer()

    def tried(options: Options, scorer: Scorer) -> _Solved:
        found = evaluate(scorer, split.valid, split.train, users=few)
        return _Solved(merit(found), options, scorer)

    def recencies(start: _Solved) -> Iterator[_Solved]:
        for recency in RECENCIES:
            if (recent := start.scorer.with_recency(recency)) is not None:
                yield tried(start.options | {"recency": recency}, recent)

    def others(options: Options, key: str, values: Sequence[Any]) -> Iterator[_Solved]:
        for value in values:
            elapsed = time.perf_counter() - started
            if elapsed + each > seconds:
                return
            progress("searching", elapsed, seconds, f"{key}={value}")
            changed = options | {key: value}
            yield tried(changed, scorer(graph, changed))

    fields = MODELS[name].Config.model_fields
    start = START.get(name, {}) | given
    best = tried(start, scorer(graph, start))
    each = time.perf_counter() - started
    if split.train.timestamps is not None and "recency" in fields.keys() - given.keys():
        best = climb(best, [recencies(best)])
    for key, values in SEARCHED.get(name, {}).items():
        if key not in given:
            paths = paths_from(values, best.options.get(key, fields[key].default))
            best = climb(best, [others(best.options, key, path) for path in paths])
    final = best.scorer
    if cuts.judging is not split:
        final = scorer(BipartiteGraph(cuts.judging.train), best.options)
    metrics = cuts.judged(final, config.seed)
    taken = time.perf_counter() - started
    return Trial(name, best.options, final, metrics["recall@20"], metrics["ndcg@20"], taken, each)


def _trained(cuts: Cuts, config: RunConfig, recency: float, progress: Progress) -> Trial:
    started = time.perf_counter()
    train = config.train.model_copy(update={"protocol": "validation", "refit": False})
    seen = cuts.judging.seen
    planned = train.epochs_for(seen.pairs_per_user)

    def fitted(split: Split, options: Options, epochs: int) -> Fit:
        changed = train.model_copy(update={"epochs": epochs})
        model = {"name": "ltocf"} | options
        settings = config.model_copy(update={"model": model, "train": changed})
        return fit(Dataset("auto", split), settings, progress=progress)

    given = given_to("ltocf", config)
    options: Options = ({"recency": recency} if recency else {}) | given
    learns = given.get("learn_times", "held-out") == "held-out"
    climbs = bool(recency) and "recency" not in given
    if climbs or (learns and cuts.judging is not cuts.searching):
        short = min(planned, EPOCHS_FOR_SETTINGS)
        found = _climb(options, lambda options: fitted(cuts.searching, options, short), climbs)
        pairs = cuts.searching.train, cuts.judging.train
        options |= _for_more_pairs(found, *pairs) if learns else {"recency": found["recency"]}
    begun = time.perf_counter()
    best = fitted(cuts.judging, options, planned)
    scorer = best.model.scorer()
    metrics = cuts.judged(scorer, config.seed)
    if learns:
        options |= _for_more_pairs(_times(best.model), cuts.judging.train, seen)
    return Trial(
        "ltocf",
        options,
        scorer,
        metrics["recall@20"],
        metrics["ndcg@20"],
        time.perf_counter() - started,
        time.perf_counter() - begun,
        train.whole_schedule(chosen_epochs(best.records) or 0, planned),
    )


def _climb(options: Options, fitted: Callable[[Options], Fit], climbs: bool = True) -> Options:
    """The times that a short training finds with the closed forms' recency, and the recency that
    such trainings like best: that or, if it `climbs`, a higher one, as trained vectors also hold
    what is lasting about a user."""
    first, recency = fitted(options), options.get("recency", 0.0)
    start = Place(_merit(first), {"recency": recency} | _times(first.model))

    def higher() -> Iterator[Place]:
        for other in RECENCIES:
            if climbs and other > recency:
                changed = start.options | {"recency": other}
                yield Place(_merit(fitted(options | changed)), changed)

    return climb(start, [higher()]).options


def _for_more_pairs(options: Options, learned_on: Interactions, used_on: Interactions) -> Options:
    """With times as they are right where there is more to learn from."""
    factor = depth_factor(learned_on, used_on)
    times = [factor * time for time in options["times"]]
    return options | {"end_time": factor * options["end_time"], "times": times}


def _merit(fitted: Fit) -> float:
    return max((merit(record.metrics) for record in fitted.records if record.metrics), default=0.0)


def _times(model: Model) -> Options:
    assert isinstance(model, LTOCF)
    _, *inner, end = model.times().tolist()
    return {"end_time": end, "times": inner, "learn_times": False}

"""What `auto` tries: models with settings that search themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from ltocf.models.ltocf import LTOCF
from ltocf.models.scorer import Scorer
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate, testable_users
from ltocf.runs.climbing import Options, Place, climb, paths_from
from ltocf.runs.depth import learn_depth_
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
FEW = 2500  # users of validation, who tell one setting from another
EPOCHS_FOR_RECENCY, RECENCIES_TRAINED = 6, 3  # of a training that tells one from another


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


def try_candidate(
    name: str,
    split: Split,
    valid: Interactions,
    config: RunConfig,
    recency: float,
    seconds: float,
    progress: Progress = silent,
) -> Trial:
    """The candidate at the settings that validation likes best. A closed form searches them for so
    many seconds; LT-OCF, which has to be trained for each, begins with the recency that closed
    forms like best and, in short trainings, tries higher ones."""
    if name == "ltocf":
        return _trained(split, valid, config, recency, progress)
    return _solved(name, split, valid, config, seconds, progress)


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


def _solved(
    name: str,
    split: Split,
    valid: Interactions,
    config: RunConfig,
    seconds: float,
    progress: Progress,
) -> Trial:
    """The best recency, then the best of each setting in turn, as long as there is time."""
    started = time.perf_counter()
    graph, given = BipartiteGraph(split.train), given_to(name, config)
    few = testable_users(valid, FEW, config.seed)

    def judged(options: Options, scorer: Scorer) -> _Solved:
        return _Solved(merit(evaluate(scorer, valid, split.train, users=few)), options, scorer)

    def solved(options: Options) -> _Solved:
        model = build_model(graph, name, options)
        model.initialise_(config.seed)
        return judged(options, model.scorer())

    def recencies(start: _Solved) -> Iterator[_Solved]:
        for recency in RECENCIES:
            if (recent := start.scorer.with_recency(recency)) is not None:
                yield judged(start.options | {"recency": recency}, recent)

    def others(options: Options, key: str, values: Sequence[Any]) -> Iterator[_Solved]:
        for value in values:
            elapsed = time.perf_counter() - started
            if elapsed + each > seconds:
                return
            progress("searching", elapsed, seconds, f"{key}={value}")
            yield solved(options | {key: value})

    fields = MODELS[name].Config.model_fields
    best = solved(START.get(name, {}) | given)
    each = time.perf_counter() - started
    if split.train.timestamps is not None and "recency" in fields.keys() - given.keys():
        best = climb(best, [recencies(best)])
    for key, values in SEARCHED.get(name, {}).items():
        if key not in given:
            paths = paths_from(values, best.options.get(key, fields[key].default))
            best = climb(best, [others(best.options, key, path) for path in paths])
    metrics = evaluate(best.scorer, valid, split.train)
    taken = time.perf_counter() - started
    return Trial(
        name, best.options, best.scorer, metrics["recall@20"], metrics["ndcg@20"], taken, each
    )


def _trained(
    split: Split, valid: Interactions, config: RunConfig, recency: float, progress: Progress
) -> Trial:
    started = time.perf_counter()
    train = config.train.model_copy(update={"protocol": "validation", "refit": False})
    planned = train.epochs_for(split.seen.pairs_per_user)

    def fitted(options: Options, epochs: int) -> Fit:
        changed = train.model_copy(update={"epochs": epochs})
        model = {"name": "ltocf"} | options
        settings = config.model_copy(update={"model": model, "train": changed})
        return fit(Dataset("auto", split), settings, progress=progress)

    def learned(options: Options) -> Options:
        """Times, learned for a whole training: the deeper, the slower, so that short ones would
        prefer a depth that is too small."""
        model = build_model(BipartiteGraph(split.train), "ltocf", options)
        whole = train.model_copy(update={"epochs": planned})
        learn_depth_(model, split.valid, whole, config.loss, seed=config.seed, progress=progress)
        return _times(model)

    given = given_to("ltocf", config)
    options: Options = ({"recency": recency} if recency else {}) | given
    learns = given.get("learn_times", "held-out") == "held-out"
    if learns:
        options |= learned(options)
    if recency and "recency" not in given:
        short = min(planned, EPOCHS_FOR_RECENCY)
        options |= _climb(options, lambda options: fitted(options, short))
    begun = time.perf_counter()
    best = fitted(options, planned)
    scorer = best.model.scorer()
    metrics = evaluate(scorer, valid, split.train)
    if learns:
        # As built before any were found, so that it takes them for what they are: learned.
        final = build_model(BipartiteGraph(split.seen), "ltocf", given)
        final.carry_(best.model)
        options |= _times(final)
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


def _climb(options: Options, fitted: Callable[[Options], Fit]) -> Options:
    """The recency that trainings like best: the closed forms' or a higher one, as trained vectors
    also hold what is lasting about a user."""

    def tried(recency: float) -> Place:
        return Place(_merit(fitted(options | {"recency": recency})), {"recency": recency})

    higher = (tried(recency) for recency in RECENCIES if recency > options["recency"])
    return climb(tried(options["recency"]), [higher]).options


def _merit(fitted: Fit) -> float:
    return max((merit(record.metrics) for record in fitted.records if record.metrics), default=0.0)


def _times(model: Model) -> Options:
    assert isinstance(model, LTOCF)
    _, *inner, end = model.times().tolist()
    return {"end_time": end, "times": inner, "learn_times": False}

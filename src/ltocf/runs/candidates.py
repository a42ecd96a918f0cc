"""What `auto` tries: models with settings that search themselves, and what each will cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

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
from ltocf.ranking.metrics import evaluate
from ltocf.runs.fitting import Fit, fit
from ltocf.runs.records import merit
from ltocf.runs.refit import chosen_epochs
from ltocf.runs.training import Trainer

Options = dict[str, Any]
# From the cheapest to the dearest, so that a small budget still compares different kinds.
CANDIDATES = (
    "rp3beta", "turbocf", "gfcf", "ease", "sparse_ease", "chebycf", "bspm", "ltocf",
)  # fmt: skip
RECENCIES = (0.2, 0.4, 0.7, 1.0, 1.4)  # tried of each closed form where times are known
EASE_L2 = (50.0, 200.0, 500.0, 1500.0)
LARGEST_EASE = 16_000  # users or items, whichever are fewer: its matrix is dense
SMALL = 100_000  # pairs: whatever is tried on so few takes seconds
PART = 1 / 16  # of the users, to measure a cost by
STEPS_TIMED = 4  # the first may have to compile kernels
EPOCHS_FOR_TIMES = 6  # that learning them takes as long as, in two rounds
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
    epochs: int | None = None  # to train for on all pairs, of a model that is trained

    @property
    def merit(self) -> float:
        return merit({"recall@20": self.recall, "ndcg@20": self.ndcg})

    @property
    def final_seconds(self) -> float:
        """What a fit with the settings found will take, searched for no more."""
        return self.seconds / (len(EASE_L2) if self.name == "ease" else 1)

    @property
    def label(self) -> str:
        shown = {"recency", "l2", "end_time"} & self.options.keys()
        settings = " ".join(f"{key}={self.options[key]:.4g}" for key in sorted(shown))
        return f"{self.name} {settings}".strip()


def try_candidate(
    name: str,
    split: Split,
    valid: Interactions,
    config: RunConfig,
    recency: float,
    progress: Progress = silent,
) -> Trial:
    """The candidate at the settings that validation likes best. A closed form is tried with each
    recency; LT-OCF, which has to be trained for each, with the one that closed forms like best and,
    in short trainings, with higher ones."""
    if name == "ltocf":
        return _trained(split, valid, config, recency, progress)
    started = time.perf_counter()
    found = [
        (evaluate(scorer, valid, split.train), options, scorer)
        for options, scorer in _closed_forms(name, split, config)
    ]
    metrics, options, scorer = max(found, key=lambda tried: merit(tried[0]))
    seconds = time.perf_counter() - started
    return Trial(name, options, scorer, metrics["recall@20"], metrics["ndcg@20"], seconds)


def given_to(name: str, config: RunConfig) -> Options:
    """What the user has settled of a candidate: each has what it knows of."""
    fields = MODELS[name].Config.model_fields
    return {key: value for key, value in config.model_options.items() if key in fields}


def check_given(config: RunConfig) -> None:
    known = {key for name in CANDIDATES for key in given_to(name, config)}
    for key in config.model_options:
        if key not in known:
            raise ConfigError(f"{key!r} is no setting of anything that 'auto' tries")


def _closed_forms(name: str, split: Split, config: RunConfig) -> Iterator[tuple[Options, Scorer]]:
    graph, given = BipartiteGraph(split.train), given_to(name, config)
    timed = split.train.timestamps is not None
    for own in [{"l2": l2} for l2 in EASE_L2] if name == "ease" else [Options()]:
        own |= given
        model = build_model(graph, name, own)
        model.initialise_(config.seed)
        scorer = model.scorer()
        yield own, scorer
        if timed and "recency" not in given and "recency" in model.Config.model_fields:
            for recency in RECENCIES:
                if (recent := scorer.with_recency(recency)) is not None:
                    yield own | {"recency": recency}, recent


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

    given = given_to("ltocf", config)
    options: Options = ({"recency": recency} if recency else {}) | given
    if recency and "recency" not in given:
        short = min(planned, EPOCHS_FOR_RECENCY)
        options |= _climb(options, lambda options: fitted(options, short))
    best = fitted(options, planned)
    scorer = best.model.scorer()
    metrics = evaluate(scorer, valid, split.train)
    if given.get("learn_times", "held-out") == "held-out":
        options |= _times(best.model, depth_factor(split.train, split.seen))
    return Trial(
        "ltocf",
        options,
        scorer,
        metrics["recall@20"],
        metrics["ndcg@20"],
        time.perf_counter() - started,
        train.whole_schedule(chosen_epochs(best.records) or 0, planned),
    )


def _climb(options: Options, fitted: Callable[[Options], Fit]) -> Options:
    """The times that short trainings find with the closed forms' recency, and the recency that they
    like best: that or a higher one, as trained vectors also hold what is lasting about a user."""
    best = fitted(options)
    found = {"recency": options["recency"]} | _times(best.model)
    for recency in RECENCIES:
        if recency > found["recency"]:
            tried = fitted(options | found | {"recency": recency})
            if _merit(tried) <= _merit(best):
                break
            best, found = tried, found | {"recency": recency}
    return found


def _merit(fitted: Fit) -> float:
    return max((merit(record.metrics) for record in fitted.records if record.metrics), default=0.0)


def _times(model: Model, factor: float = 1.0) -> Options:
    assert isinstance(model, LTOCF)
    _, *inner, end = (factor * model.times()).tolist()
    return {"end_time": end, "times": inner, "learn_times": False}


def estimated_seconds(name: str, split: Split, config: RunConfig) -> float:
    """What `try_candidate` and a fit of what it finds will take here, measured on a part."""
    train = split.train
    if len(train) < SMALL:
        return 0.0
    if name == "ease":
        small = torch.eye(1000) * 2
        each = _seconds(lambda: torch.cholesky_inverse(torch.linalg.cholesky(small)))
        larger = min(train.n_users, train.n_items) / len(small)
        return each * larger**3 * (len(EASE_L2) + 1)
    if name == "ltocf":
        return _training_seconds(split, config)
    active = np.flatnonzero(train.user_degrees)
    drawn = np.random.default_rng(0).choice(active, max(int(len(active) * PART), 1), replace=False)
    part = train.select(np.isin(train.users, drawn))
    scale = len(train) / max(len(part), 1)
    return 2 * scale * _seconds(lambda: build_model(BipartiteGraph(part), name, {}).initialise_(0))


def _training_seconds(split: Split, config: RunConfig) -> float:
    """By a few steps on all pairs: a part of them has as many steps, and hardly fewer nodes."""
    model = build_model(BipartiteGraph(split.train), "ltocf", given_to("ltocf", config))
    setting_up = _seconds(lambda: model.initialise_(config.seed))
    epochs = config.train.epochs_for(split.train.pairs_per_user)
    trainer = Trainer(model, config.train, config.loss, config.seed, epochs)
    batches = model.batches(
        config.loss,
        batch_size=trainer.batch_size,
        draw_by=config.train.draw_by,
        seed=config.seed,
        epoch=1,
    )
    each = [_seconds(partial(trainer.step, batch, 0)) for batch in islice(batches, STEPS_TIMED)]
    judging = _seconds(lambda: trainer.validate(split.valid))
    total = 2 * epochs + EPOCHS_FOR_TIMES
    if split.train.timestamps is not None and "recency" not in given_to("ltocf", config):
        total += RECENCIES_TRAINED * EPOCHS_FOR_RECENCY
    return 2 * setting_up + total * (len(batches) * min(each) + judging)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fits(name: str, split: Split) -> bool:
    smaller = min(split.train.n_users, split.train.n_items)
    return name != "ease" or smaller <= LARGEST_EASE

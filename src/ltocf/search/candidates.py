"""What a search can try: models, which of their settings it varies, and the gain to expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ltocf.config import BPR, RunConfig, Softmax, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.errors import ConfigError
from ltocf.models import MODELS
from ltocf.search.climbing import Options
from ltocf.training.weighing import LADDERS

RECENCIES = (0.0, *LADDERS["recency"])  # tried where times are known
QUICK = ("recency",)  # settings that need no new fit: they only weigh the histories anew
SHARES = (0.03, 0.1, 0.3, 1.0)  # popularity may count only this latest share of all interactions
TAG_WEIGHTS = (0.0, 0.3, 1.0)  # tried where items have tags
LARGEST_EASE = 16_000  # users or items, whichever are fewer: its matrix is dense


@dataclass(frozen=True)
class Candidate:
    """A model to try.

    `promise` is the gain to expect over the best of faster candidates, as a share: the average over
    the data sets that we have. What this run measures replaces it.
    """

    promise: float
    searched: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    starts: tuple[Options, ...] = ({},)  # options to begin with, over the defaults
    sparse_starts: tuple[Options, ...] = ()  # before those, where users and items have few pairs
    ordered: bool = False  # only for logs whose order is known
    tagged: bool = False  # only for items with tags


# What "EASE's family" varies (Steck's denoising, Jin et al.'s relaxed diagonal, powers of degrees).
FAMILY = {
    "dropout": (0.0, 0.1, 0.3, 0.6),
    "user_power": (0.0, 0.3, 0.5),
    "item_power": (0.0, 0.1, 0.2),
    "self_weight": (0.0, 0.1, 0.2),
}
# Fitting, judging and writing take a third of the time that they take with all weights.
FEW_NEIGHBOURS: Options = {"neighbours": 200}
DENSE: Options = {"l2": 10.0, "dropout": 0.1, "user_power": 0.5, "item_power": 0.1}
# A depth that suits a short training. The times that LT-OCF learns by itself, and as many epochs
# as it takes by itself, are about 1 % better and take thrice as long (research/experiments-log.md).
GIVEN_TIMES: Options = {"learn_times": False, "end_time": 4.7, "tolerance": 0.1}
SHORT = 16  # epochs with given times, at most
# For data with few pairs per user and item; trained by softmax (`loss_settings`).
COSINES: Options = GIVEN_TIMES | {"normalise": True}
FEW_PAIRS = 4.0  # pairs / (users + items); measured at 2 to 3, and not beyond
COSINE_RATE = 3e-3
CANDIDATES: dict[str, Candidate] = {
    # Saved before anything is tried. It is hardly ever best alone, but useful in blends.
    "popularity": Candidate(promise=0.05),
    "turbocf": Candidate(
        promise=1.0,
        searched={
            "power": (0.3, 0.5, 0.7, 1.0),
            "alpha": (0.4, 0.5, 0.6, 0.7, 0.8),
            "filter": ("linear", "second"),
        },
        starts=(FEW_NEIGHBOURS, {}),
    ),
    "rp3beta": Candidate(
        promise=0.4,
        searched={"beta": (0.0, 0.2, 0.4, 0.6, 0.8), "alpha": (0.6, 0.8, 1.0, 1.3)},
    ),
    "ease": Candidate(
        promise=1.0,
        searched={"l2": (3.0, 10.0, 30.0, 80.0, 200.0, 500.0, 1500.0, 5000.0), **FAMILY},
        starts=({"l2": 500.0}, DENSE),
    ),
    "sparse_ease": Candidate(
        promise=0.5,
        searched={"l2": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), **FAMILY},
        starts=({}, DENSE),
    ),
    "transitions": Candidate(
        promise=0.5,
        searched={
            "memory": (1.0, 2.0, 3.0, 5.0, 10.0, 30.0),
            "backward": (0.0, 0.2, 0.4, 0.5, 1.0),
            "decay": (2.0, 5.0, 10.0, 30.0),
            "from_power": (0.2, 0.3, 0.4, 0.5, 0.7),
            "to_power": (0.0, 0.1, 0.2, 0.3, 0.5),
        },
        ordered=True,
    ),
    "attributes": Candidate(
        promise=0.1,
        searched={
            "shared": (0.0, 0.3, 1.0, 3.0),
            "popularity_power": (0.0, 0.3, 0.6),
            "l2": (1.0, 10.0, 100.0),
        },
        tagged=True,
    ),
    "ials": Candidate(
        promise=0.1,
        searched={
            "unobserved_weight": (0.01, 0.03, 0.1, 0.3, 1.0),
            "l2": (0.0003, 0.001, 0.003, 0.01, 0.03),
            "dim": (64, 128, 256),
        },
    ),
    # Without its ideal filter nothing has to be solved: a good model within a second or two.
    "gfcf": Candidate(
        promise=1.0,
        searched={"ideal_weight": (0.0, 0.1, 0.3, 0.6, 1.0)},
        starts=({"ideal_weight": 0.0}, {}),
    ),
    "chebycf": Candidate(
        promise=0.2,
        searched={
            "degree_power": (0.2, 0.3, 0.4, 0.5, 0.6),
            "ideal_weight": (0.0, 0.1, 0.2, 0.4),
        },
    ),
    "bspm": Candidate(
        promise=0.03,
        searched={
            "end_time": (1.0, 1.5, 2.0, 2.5, 3.0),
            "ideal_weight": (0.0, 0.1, 0.2, 0.4),
        },
    ),
    "ltocf": Candidate(promise=0.2, starts=(GIVEN_TIMES, {}), sparse_starts=(COSINES,)),
}


def order_counts(split: Split, config: RunConfig) -> bool:
    """Whether models may use the order of histories: recency=0 says that they may not."""
    return split.train.timestamps is not None and config.model_options.get("recency") != 0


def candidates_for(split: Split, config: RunConfig) -> Iterator[str]:
    """The candidates that suit these data and the given settings."""
    smaller = min(split.train.n_users, split.train.n_items)
    for name, candidate in CANDIDATES.items():
        if candidate.ordered and not order_counts(split, config):
            continue
        if candidate.tagged and split.train.item_tags is None:
            continue
        if name == "ease" and smaller > LARGEST_EASE:
            continue
        yield name


def promise_of(name: str, split: Split, config: RunConfig) -> float:
    """By what share a candidate should raise the best of the faster ones. Where EASE itself can be
    solved, its sparse form hardly finds anything else."""
    promise = CANDIDATES[name].promise
    if name == "sparse_ease" and "ease" in candidates_for(split, config):
        return 0.1 * promise
    return promise


def given_to(name: str, config: RunConfig) -> Options:
    """Those of the user's settings that this candidate has."""
    fields = MODELS[name].Config.model_fields
    return {key: value for key, value in config.model_options.items() if key in fields}


def check_given(config: RunConfig) -> None:
    known = {key for name in CANDIDATES for key in given_to(name, config)}
    for key in config.model_options:
        if key not in known:
            raise ConfigError(
                f"unknown key {key!r}: no model that the search tries has such a setting"
            )


def starts_of(name: str, config: RunConfig, recency: float, train: Interactions) -> list[Options]:
    """The first settings to try: those given, with the recency that other models like best."""
    given = given_to(name, config)
    recent: Options = {}
    usual = usual_options(name)
    # Said even if it is 0 where training would choose it otherwise, since the search does.
    chosen = "recency" in usual and usual["recency"] is None and train.timestamps is not None
    if "recency" in usual and (recency or chosen):
        recent = {"recency": recency}
    sparse = CANDIDATES[name].sparse_starts if train.pairs_per_node < FEW_PAIRS else ()
    usual_starts = CANDIDATES[name].starts
    if TrainConfig().epochs_for(train.pairs_per_user) <= SHORT:
        # With many pairs per user, training by itself is short too, and a depth chosen for others
        # costs 3 to 8 % on validation (research/experiments-log.md).
        usual_starts = tuple(start for start in usual_starts if start != GIVEN_TIMES)
    starts = [start | recent | given for start in (*sparse, *usual_starts)]
    return [start for place, start in enumerate(starts) if start not in starts[:place]]


def choices_for(name: str, config: RunConfig, split: Split) -> dict[str, tuple[Any, ...]]:
    """The settings that are varied: those that are not given, recency where times are known, and
    the weight of tags where items have tags."""
    fields, given = MODELS[name].Config.model_fields, given_to(name, config)
    choices: dict[str, tuple[Any, ...]] = {}
    if order_counts(split, config):
        timed = {"recency": RECENCIES, "recent": SHARES}
        choices |= {key: values for key, values in timed.items() if key in fields}
    choices |= CANDIDATES[name].searched
    if split.train.item_tags is not None and "tag_weight" in fields and choices:
        choices["tag_weight"] = TAG_WEIGHTS
    return {key: values for key, values in choices.items() if key not in given}


def train_settings(options: Options, config: TrainConfig, pairs_per_user: float) -> TrainConfig:
    """How a candidate is trained. At a moderate depth, a long training only overfits."""
    if config.epochs is not None or options.get("learn_times") is not False:
        return config
    return config.model_copy(update={"epochs": min(config.epochs_for(pairs_per_user), SHORT)})


def loss_settings(options: Options, config: RunConfig) -> dict[str, Any]:
    """The loss that a candidate is trained with, and its learning rate.

    Models that score by cosine are trained by softmax, unless a loss was set: cosines lie between
    -1 and 1, which is too close together for BPR. They need no penalty, since their size is fixed.
    """
    if not options.get("normalise") or config.loss != BPR():
        return {"loss": config.loss, "train": config.train}
    rate = config.train.learning_rate or COSINE_RATE
    train = config.train.model_copy(update={"learning_rate": rate})
    return {"loss": Softmax(temperature=0.2, l2=0.0), "train": train}


def usual_options(name: str) -> Options:
    return {key: field.default for key, field in MODELS[name].Config.model_fields.items()}

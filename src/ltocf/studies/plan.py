"""What to train: a setting is one training, a plan is what the settings of a study depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ltocf.config import BPR, RunConfig, TrainConfig, find_config, read_toml, shipped_configs
from ltocf.data.dataset import Dataset
from ltocf.data.sources.published import Portion, portion_of
from ltocf.models import MODELS
from ltocf.models.ltocf import LTOCFConfig
from ltocf.runs.settings import make_config, means_something
from ltocf.training.protocol import with_validation

Budget = Literal["quick", "full"]
# The quick budget shows that every path works, in seconds; its figures mean little.
QUICK = (
    "dim=16", "epochs=3", "batch_size=1024", "negatives=8", "learning_rate=0.03", "l2=0.001",
)  # fmt: skip
QUICK_ROW = (
    "dim=16", "hidden=64", "latent=16", "width=16", "neighbours=5", "epochs=2", "negatives=8",
)  # fmt: skip
# How the times come about: even and fixed, or learned on the training loss, in the same steps as
# the embeddings: both sides then take equally many steps.
TIMES = {"fixed": ("learn_times=false",), "learned": ()}
# h(1) of every model with a response. Adam moves the final embeddings by about the learning rate
# times h(1), so sides of another size would train at another rate and with another penalty.
EQUAL_SCALE = LTOCFConfig().scale
# Of the recipe's learning rate: each side of a comparison gets the one that validation prefers.
# A flat response, such as LightGCN's, wants a tenth of the rate of a steep one; a steep one that
# trains for a few epochs wants several times the recipe's.
RATES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
QUICK_RATES = (1.0, 0.5)
FIRST_RATE, QUICK_FIRST_RATE = RATES.index(1.0), 0  # where the search for it begins
GOWALLA_PAIRS = 810_128
# Half the size and a quarter of the negatives of a row of the table, so that some 150 trainings
# are done in three hours; from singular vectors, a few hundred steps are enough.
FULL = ("dim=32", "evaluate_every=2")
FULL_EPOCHS, FULL_STEPS, FULL_NEGATIVES = 8, 25, 16  # on Gowalla; in an epoch; at most


@dataclass(frozen=True)
class Setting:
    """One training of a study. Settings that differ in their seed alone share a label."""

    label: str
    config: RunConfig
    start_from: Setting | None = None  # whose vectors this training starts from
    nested: bool = False  # trained on the training pairs of the others, tested on their validation

    def digest(self, fingerprint: str) -> str:
        """Tells trainings apart: the same digest is the same model, to the last bit."""
        values = self.config.model_dump(exclude={"dataset", "start_from", "versions"})
        first = self.start_from.digest(fingerprint) if self.start_from else ""
        text = json.dumps([values, fingerprint, first, self.nested], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: everything but its learning rate, which a sweep on validation
    chooses, and its seeds."""

    label: str
    changes: tuple[str, ...] = ()
    model: str = "ltocf"
    # Take the times, the end time among them, from a training whose held-out pairs are training
    # pairs here: nothing is judged by pairs that its times were learned from.
    nested_times: bool = False


@dataclass(frozen=True)
class Plan:
    """What the settings of a study depend on."""

    dataset: Dataset
    data: str = "town"  # the data set as the command line calls it
    budget: Budget = "quick"
    seeds: int | None = None  # for every setting; each study knows how many it needs
    overrides: tuple[str, ...] = ()  # key=value for every training that has the key

    @cached_property
    def portion(self) -> Portion | None:
        """Of which published set the data are only a portion, which every figure must say."""
        return portion_of(self.dataset.counts, self.dataset.split.dropped)

    @property
    def quick(self) -> bool:
        return self.budget == "quick"

    @property
    def all_seeds(self) -> range:
        return range(self.seeds or (2 if self.quick else 3))

    def epochs(self, on_gowalla: int) -> str:
        """The setting that takes about as long as so many epochs on Gowalla: larger data teach more
        in each, and a study should take hours, not days."""
        pairs = len(self.dataset.split.train)
        return f"epochs={max(round(on_gowalla * min(GOWALLA_PAIRS / max(pairs, 1), 1)), 1)}"

    @cached_property
    def fingerprint(self) -> str:
        split = self.dataset.split
        return "-".join(part.fingerprint for part in (split.train, split.valid, split.test))

    def config(self, model: str = "ltocf", *changes: str, seed: int = 0) -> RunConfig:
        """Our recipe, judged on validation: LT-OCF as the paper's best, K = 4 and T = 3, or another
        model trained in the same way, so that nothing but the model differs.

        On data without an order, validation is a random cut instead of everybody's latest pairs.
        """
        ordered = self.dataset.split.train.timestamps is not None
        cut = f"validation_cut={'latest' if ordered else 'random'}"
        common = ["protocol=validation", cut, "patience=1000", "refit=false"]
        paper = ["end_time=4.0", "time_points=3", "learn_times=true", "time_updates=joint"]
        # Popularity beside the scores would hide what an arm's own response makes of it.
        size = [f"scale={EQUAL_SCALE}", "popularity=0"]
        budget = QUICK if self.quick else self._full
        config = self._recipe("ltocf", [*common, *budget], seed)
        start = {"start": "spectral", "dim": config.model.get("dim", 64)}
        values = config.model_dump(exclude_none=True)
        if model != "ltocf":
            values["model"], paper = {"name": model, **start}, []
        own = [change for change in self.overrides if model == "ltocf" or _takes(model, change)]
        return make_config(values, [*paper, *size, *changes, *own])

    @property
    def _full(self) -> tuple[str, ...]:
        """The full budget: as many steps in an epoch for any size of data."""
        train = self.dataset.split.train
        usual = BPR().negatives_for(train.density, train.pairs_per_node)
        negatives = min(usual, FULL_NEGATIVES)
        batch = max(-(-len(train) // FULL_STEPS), 512)
        sizes = (f"negatives={negatives}", f"batch_size={batch}")
        return (*FULL, *sizes, self.epochs(FULL_EPOCHS))

    def rates(self, arm: Arm) -> list[float]:
        """The learning rates that an arm may be tried with, the largest first."""
        usual = self.config(arm.model, *arm.changes).train.learning_rate
        assert usual is not None  # the recipe has one
        return [usual * share for share in (QUICK_RATES if self.quick else RATES)]

    @property
    def first_rate(self) -> int:
        """Which of the rates is tried first; the next smaller one is always tried too."""
        return QUICK_FIRST_RATE if self.quick else FIRST_RATE

    @property
    def usual_trials(self) -> int:
        """How many rates an arm is tried with, as a rule."""
        return 2 if self.quick else 3

    def trial(self, arm: Arm, rate: float, seed: int = 0, times: Sequence[str] = ()) -> Setting:
        """A training of an arm; `times` are those found for it, as settings."""
        changes = (*arm.changes, *times, f"learning_rate={rate:g}")
        return Setting(arm.label, self.config(arm.model, *changes, seed=seed))

    def time_search(self, arm: Arm) -> Setting:
        """The training that finds the times of an arm with nested ones."""
        config = self.config(arm.model, *arm.changes, "learn_times=held-out", "refit=false")
        return Setting(f"{arm.label}: finding the times", config, nested=True)

    @cached_property
    def nested_dataset(self) -> Dataset:
        """The training pairs of every other training, with their validation pairs as test."""
        config = self.config()
        cut = with_validation(self.dataset.split, config.train, config.seed)
        nothing = cut.valid.select(np.zeros(len(cut.valid), dtype=bool))
        return replace(self.dataset, split=replace(cut, valid=nothing, test=cut.valid))

    def row(self, name: str) -> RunConfig:
        """The row of the paper's table called `name`, trained as its config says."""
        quick = QUICK_ROW if self.quick else ()
        return self._recipe(name, [*quick, *self.overrides], 0)

    def _recipe(self, name: str, changes: Sequence[str], seed: int) -> RunConfig:
        """The package's config of this data set, or Gowalla's with batches to fit."""
        own = shipped_configs().get(f"{self.dataset.name}-{name}")
        values = read_toml(own or find_config(f"gowalla-{name}"))
        if own is None:
            values["train"].pop("batch_size", None)
        model = values["model"]["name"]
        kept = [change for change in changes if _takes(model, change)]
        config = make_config(values, [*kept, f"seed={seed}"])
        return config.model_copy(update={"dataset": self.data, "start_from": None})


def _takes(model: str, change: str) -> bool:
    """Whether a model has the setting that `key=value` changes: Mult-VAE has no dim."""
    key = change.partition("=")[0].strip()
    kinds = (MODELS[model].Config, TrainConfig, BPR)
    known = any(key.rpartition(".")[2] in kind.model_fields for kind in kinds)
    return known and means_something(key, model)

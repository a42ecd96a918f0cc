"""The settings of a run, and how to read and write them as TOML; unknown keys are refused."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, Field, ValidationError

from ltocf.errors import ConfigError
from ltocf.storage.digests import read_text

SHARED = 1024  # default number of negatives that a whole batch shares


class BPR(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`[loss]`: a positive against the hardest of several negatives, their mean, or shared ones."""

    name: Literal["bpr"] = "bpr"
    # Unseen items drawn for each positive, or shared by a whole batch. None: fewer, the denser the
    # data, and the fewer pairs users and items have (`negatives_for`).
    negatives: int | None = Field(default=None, ge=1)
    # Keep the negative that the model scores highest, average over all, or share one draw.
    sampling: Literal["hardest", "uniform", "shared"] = "hardest"
    # Penalty on the initial embeddings in the batch. None: less, the more pairs users have.
    l2: float | None = Field(default=None, ge=0)

    def l2_for(self, pairs_per_user: float) -> float:
        """A user's prior should count once, however many pairs they have. As the penalty is applied
        to each pair, it is divided by their number. With few pairs its size hardly matters."""
        return 0.6 / max(pairs_per_user, 50) if self.l2 is None else self.l2

    def negatives_for(self, density: float, pairs_per_node: float) -> int:
        """Fewer, the denser the data: in dense data the hardest of many negatives is likely to be
        an item that the user would like. Fewer, too, where users and items have few pairs: there
        vectors tell little yet, and the hardest of many is just what is popular."""
        by_density, by_pairs = 1.6 / density**0.5, 64 * min(pairs_per_node / 8, 1) ** 3
        return self.negatives or max(round(min(by_density, by_pairs)), 4)


class Softmax(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`[loss]`: cross-entropy of a positive among itself and the negatives."""

    name: Literal["softmax"] = "softmax"
    negatives: int = Field(default=SHARED, ge=1)  # per batch, or with "uniform" per positive
    sampling: Literal["uniform", "shared"] = "shared"  # drawn per positive, or once per batch
    temperature: float = Field(default=0.1, gt=0)  # scores are divided by it
    l2: float = Field(default=5e-3, ge=0)  # on the rows of the batch in the initial embeddings

    def l2_for(self, pairs_per_user: float) -> float:
        return self.l2

    def negatives_for(self, density: float, pairs_per_node: float) -> int:
        return self.negatives


class BSL(Softmax, frozen=True):
    """`[loss]`: softmax with a separate temperature for positives."""

    name: Literal["bsl"] = "bsl"  # type: ignore[assignment]
    positive_temperature: float = Field(default=0.1, gt=0)  # positive scores are divided by it


class SLatK(Softmax, frozen=True):
    """`[loss]`: softmax where a positive counts the more, the nearer it is to the user's top k."""

    name: Literal["slatk"] = "slatk"  # type: ignore[assignment]
    k: int = Field(default=20, ge=1)  # of the lists that should be right
    # A positive counts sigmoid((its score - the user's k-th largest score) / this).
    weight_temperature: float = Field(default=1.0, gt=0)
    sample: int = Field(default=SHARED, ge=1)  # items that the k-th largest is estimated from
    refresh_every: int = Field(default=3, ge=1)  # epochs between estimates


Loss = BPR | Softmax | BSL | SLatK
LOSSES: dict[str, type[Loss]] = {"bpr": BPR, "softmax": Softmax, "bsl": BSL, "slatk": SLatK}


ValidationCut = Literal["random", "latest", "last", "temporal", "items"]


class TrainConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`[train]`"""

    epochs: int | None = Field(default=None, ge=0)  # None: fewer, the more pairs users have
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if there is one
    # Pairs per batch. None: about 50 batches per epoch, of at least 512 pairs.
    batch_size: int | None = Field(default=None, ge=1)
    # Every pair once per epoch, or every user equally often, as in LightGCN.
    draw_by: Literal["pairs", "users"] = "pairs"
    # Adam's, at the start. None: 8e-3, or less if users and items have few pairs.
    learning_rate: float | None = Field(default=None, gt=0)
    schedule: Literal["cosine", "constant"] = "cosine"  # of the learning rate
    average_decay: float = Field(default=0.0, ge=0, lt=1)  # of averaged weights; 0: no averaging
    # Choose the epoch on validation, keep the last, or (as often published) the best on test.
    protocol: Literal["validation", "fixed", "best-test-epoch"] = "validation"
    # Share of train to hold out for choosing the epoch. None: a tenth of random pairs, or of the
    # latest pairs the share that test has.
    validation: float | None = Field(default=None, gt=0, lt=1)
    # Which pairs to hold out: some of each user at random, each user's latest, each user's last
    # one, the latest of all, or all pairs of some items. None: as the test pairs were chosen.
    validation_cut: ValidationCut | None = None
    refit: bool = True  # then train from scratch on all pairs but test, for as long
    evaluate_every: int = Field(default=1, ge=1)  # epochs between validations
    patience: int = Field(default=10, ge=1)  # evaluations without improvement, not epochs

    def epochs_for(self, pairs_per_user: float) -> int:
        """As many epochs as train on about 900 pairs of each user, but 8 to 30."""
        if self.epochs is not None:
            return self.epochs
        return min(max(round(900 / max(pairs_per_user, 1)), 8), 30)

    def learning_rate_for(self, pairs_per_node: float) -> float:
        """Adam moves every vector by about the same amount per step, however few pairs it learns
        from. With few pairs, the usual rate therefore overfits within an epoch."""
        return self.learning_rate or min(max(8e-3 * (pairs_per_node / 8) ** 2, 1e-3), 8e-3)

    def schedule_at(self, fraction: float) -> float:
        """What learning rates are multiplied by when this part of all epochs is over."""
        return 0.5 * (1 + math.cos(math.pi * fraction)) if self.schedule == "cosine" else 1.0

    def whole_schedule(self, chosen: int, planned: int) -> int:
        """How many epochs of a complete schedule have the same sum of learning rates as the first
        `chosen` epochs of `planned`. A complete schedule ends at rate 0, and so with less noise
        than one that is cut off at a high rate."""
        if self.schedule == "constant" or not planned:
            return chosen
        return round(chosen + planned / math.pi * math.sin(math.pi * chosen / planned))

    def batch_size_for(self, n_interactions: int) -> int:
        # A graph model propagates once per batch, so the number of batches must not grow with the
        # data.
        return self.batch_size or max(-(-n_interactions // 50), 512)


class RunConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """All that is needed to repeat a run."""

    dataset: str = "town"  # a name of 'ltocf datasets', or a directory of 'ltocf prepare'
    seed: int = Field(default=0, ge=0, lt=2**63)  # of all random draws
    start_from: str | None = None  # a run on the same data: start from its embeddings
    model: dict[str, Any] = {"name": "ltocf"}  # validated by the model's own Config
    loss: Annotated[Loss, Field(discriminator="name")] = BPR()
    train: TrainConfig = TrainConfig()
    versions: dict[str, str] = {}

    @property
    def model_name(self) -> str:
        return str(self.model["name"])

    @property
    def model_options(self) -> dict[str, Any]:
        return {key: value for key, value in self.model.items() if key != "name"}


Config = TypeVar("Config", bound=BaseModel)


def validated(config: type[Config], values: Mapping[str, Any], where: str) -> Config:
    """The config, or a ConfigError that names the key as the user typed it and the choices."""
    try:
        return config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            choices = ", ".join(config.model_fields)
            raise ConfigError(f"unknown key {key!r} in {where}; choose one of: {choices}") from None
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where} {key} = {first['input']!r}: {message.lower()}") from None


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise ConfigError(f"no config file {str(path)!r}") from None
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from None


def to_toml(config: RunConfig) -> str:
    """TOML that reads back as the same config. Keys that are None are left out, since TOML has no
    null and None is their default."""
    return tomli_w.dumps(_without_none(config.model_dump()))


def _without_none(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_none(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return value


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package, by name, such as 'gowalla-ltocf'."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "configs").glob("*.toml"))}


def find_config(name_or_path: str | Path) -> Path:
    """A file of this path, or the config of this name that comes with the package."""
    path = Path(name_or_path)
    if path.is_file() or path.suffix or len(path.parts) != 1:
        return path
    try:
        return shipped_configs()[path.name]
    except KeyError:
        raise ConfigError(
            f"no config {path.name!r}: there is no such file, and 'ltocf configs' does not list it"
        ) from None

"""A run directory: everything needed to use a trained model, repeat its training or continue it.

config.toml         settings, data set, seed, library versions
data/               the split it was trained on, with ids and item names
weights.safetensors the weights of the fitted model
scorer.safetensors  once training has finished: the scorer's arrays that are not among the weights
portrait.json       once training has finished: what is drawn of the model, its response and times
state.safetensors   while unfinished: the state that training continues from
history.jsonl       one line per epoch
metrics.json        the test metrics, computed once, when training has finished
curves.png          loss, metrics and times over the epochs
auto.json           if a search chose the model: what was tried, how long it took, how good it was
digests.json        the digest of each file, to detect damage
events.db           if it is served: the events since training
versions/           if it was updated: complete runs; current.json names the one in use
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ltocf import __version__
from ltocf.config import RunConfig, to_toml
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError, DataError, RunError
from ltocf.runs.run_files import (
    IDENTITY,
    SCORER,
    WEIGHTS,
    ReplacedError,
    RunFiles,
    as_arrays,
    read_digests,
    read_scorer,
    write_scorer,
    write_weights,
)
from ltocf.runs.settings import read_config
from ltocf.runs.versions import MARKER, METRICS, current_path, refuse_foreign
from ltocf.scorers.scorer import Scorer
from ltocf.storage.digests import ATTEMPTS, Digests, read_at_rest
from ltocf.storage.files import new_directory

if TYPE_CHECKING:  # these need torch, which takes seconds to load and which making a list does not
    from ltocf.models.base import Model
    from ltocf.ranking.metrics import Metrics
    from ltocf.training.records import EpochRecord, TrainState

STATE = "state.safetensors"
HISTORY = "history.jsonl"
EVENTS = "events.db"  # the events since training, if the run is served
COMPARISON = "auto.json"
COUNTERS = ("epoch", "best_epoch", "best_metric", "stale", "stage", "epochs")
PORTRAIT = "portrait.json"
POINTS = 101  # of a drawn response
Contents = TypeVar("Contents")


class Portrait(NamedTuple):
    """What is drawn of a trained model, saved with the run: drawing it needs no torch."""

    times: list[float]  # when the states of an ODE are read
    response: dict[str, list[float]] | None  # "x", and the response at x for each named curve

    @classmethod
    def of(cls, model: Model) -> Portrait:
        import torch

        try:
            responses = model.responses()
        except ConfigError:  # the model is not a polynomial of the graph
            return cls(model.extracted_times(), None)
        x = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
        curves = {name: of(x).detach().tolist() for name, of in responses.items()}
        return cls(model.extracted_times(), {"x": x.tolist()} | curves)

    @classmethod
    def from_json(cls, text: str) -> Portrait:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(self._asdict()) + "\n"


class Run:
    """An open run directory. Every file in it is written completely or not at all."""

    def __init__(self, path: Path, config: RunConfig, dataset: Dataset) -> None:
        self.path, self.config, self.dataset = path, config, dataset
        self._files = RunFiles(path)

    @classmethod
    def create(
        cls, path: Path, config: RunConfig, dataset: Dataset, *, overwrite: bool = False
    ) -> Run:
        """A new directory with the settings and the data, and no weights yet."""
        keep_events(path)
        # Last digits may change with a library's version, so a run records the versions it used.
        config = config.model_copy(update={"versions": library_versions()})
        with new_directory(path, marker=MARKER, overwrite=overwrite, error=RunError) as temporary:
            (temporary / MARKER).write_text(to_toml(config), encoding="utf-8")
            dataset.save(temporary / "data")
        return cls(path, config, dataset)

    @classmethod
    def store(
        cls,
        path: Path,
        config: RunConfig,
        dataset: Dataset,
        model: Model,
        metrics: Metrics,
        *,
        overwrite: bool = False,
    ) -> Run:
        """A new directory with a trained model; an old one is replaced in one step."""
        keep_events(path)
        with new_directory(path, marker=MARKER, overwrite=overwrite, error=RunError) as temporary:
            run = cls.create(temporary, config, dataset)
            run.finish(model, metrics)
        return cls(path, run.config, dataset)

    @classmethod
    def open(cls, path: Path) -> Run:
        """The version in use of the run at `path`, its settings and data checked."""
        return cls.at(current_path(path))

    @classmethod
    def at(cls, path: Path) -> Run:
        """The run or version whose files are in `path`. If it is replaced meanwhile, it is read
        again."""
        return read_at_rest(
            partial(cls._open, path),
            partial(read_digests, path),
            lambda before, after: before.same_as(after, *IDENTITY),
            RunError,
        )

    @classmethod
    def _open(cls, path: Path, digests: Digests) -> Run:
        refuse_foreign(path)
        # Only settings and data are checked here, since they are needed at once. Weights, which can
        # be gigabytes, are checked when they are loaded.
        for name in IDENTITY:
            if problem := digests.problem(name):
                raise RunError(f"damaged run: {path / name} {problem}; train it again")
        try:
            return cls(path, read_config(path / MARKER, of_run=True), Dataset.load(path / "data"))
        except (ConfigError, DataError) as error:
            raise RunError(f"damaged run: {error}; train it again") from None

    def writing(self) -> AbstractContextManager[None]:
        """Be the only process that writes into the directory; an error if another run has taken
        its place."""
        return self._files.writing()

    @cached_property
    def model(self) -> Model:
        """The model with this run's settings but without its weights, which `load` reads."""
        from ltocf.training.fitting import build

        return build(self.config, self.dataset)

    def load(self) -> Model:
        """The model of this run, with the weights that were kept."""
        model = self.model
        if not self._files.exists(WEIGHTS):
            raise RunError(
                f"{self.path}: has not been trained (no {WEIGHTS}); continue it "
                "(ltocf train --resume)"
            )
        import torch

        arrays, _ = self._files.arrays(WEIGHTS)
        try:
            model.restore_({name: torch.from_numpy(array) for name, array in arrays.items()})
        except (KeyError, RuntimeError):
            raise self._files.damaged(WEIGHTS, "belongs to another model") from None
        return model.eval()

    @property
    def learned_from(self) -> Interactions:
        """The pairs that the saved model has learned from."""
        return self.dataset.split.learned(refit=self.config.train.refit)

    def scorer(self) -> Scorer:
        """The run's scorer, from its file. An unfinished run has none; then the model makes it,
        which needs torch."""
        if not self._files.exists(SCORER):
            return self.load().scorer()
        return read_scorer(self._files, self.learned_from)

    def save_weights(self, model: Model) -> None:
        """Write the weights and remove a scorer that was made from other weights."""
        write_weights(self._files, model.fitted_state())

    @property
    def finished(self) -> bool:
        return self._files.exists(METRICS)

    def save_state(self, state: TrainState) -> None:
        counters = {name: json.dumps(getattr(state, name)) for name in COUNTERS}
        self._files.put_arrays(STATE, as_arrays(state.tensors), counters)

    def load_state(self) -> TrainState | None:
        """Where training stopped, or None if no epoch was finished."""
        if not self._files.exists(STATE):
            return None
        import torch

        from ltocf.training.records import TrainState

        arrays, counters = self._files.arrays(STATE)
        # Copied, because the arrays are mapped from a file that the next epoch replaces.
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        if set(counters) != set(COUNTERS):
            raise self._files.damaged(STATE, "lacks its counters")
        return TrainState(**{k: json.loads(v) for k, v in counters.items()}, tensors=tensors)

    def save_history(self, records: list[EpochRecord]) -> None:
        self._files.put_text(HISTORY, "".join(record.to_json() + "\n" for record in records))

    def history(self) -> list[EpochRecord]:
        if not self._files.exists(HISTORY):
            return []
        from ltocf.training.records import EpochRecord

        try:
            lines = self._files.text(HISTORY).splitlines()
            return [EpochRecord(**json.loads(line)) for line in lines]
        except (ValueError, TypeError, RecursionError):
            raise self._files.damaged(HISTORY, "is not a history that ltocf wrote") from None

    def portrait(self) -> Portrait | None:
        """What is drawn of the model; None before the run is finished."""
        if not self._files.exists(PORTRAIT):
            return None
        try:
            return Portrait.from_json(self._files.text(PORTRAIT))
        except (ValueError, TypeError, RecursionError):
            raise self._files.damaged(PORTRAIT, "is not one that ltocf wrote") from None

    def save_comparison(self, tried: list[dict[str, object]]) -> None:
        """Write what `auto` tried before it chose this model."""
        with self.writing():
            self._files.put_text(COMPARISON, json.dumps(tried, indent=2) + "\n")

    def finish(self, model: Model, metrics: Metrics) -> None:
        """Save the weights and the test metrics, and remove the state that resuming needed."""
        with self.writing():
            self.save_weights(model)
            # The metrics come last: a run that has them counts as finished.
            write_scorer(self._files, model.scorer(), model.fitted_state())
            self._files.put_text(PORTRAIT, Portrait.of(model).to_json())
            self._files.put_text(METRICS, json.dumps(metrics, indent=2) + "\n")
            self.forget_state()

    def save_metrics(self, metrics: Metrics) -> None:
        """Write the test metrics of a model whose weights were saved before it was tested."""
        with self.writing():
            self._files.put_text(METRICS, json.dumps(metrics, indent=2) + "\n")

    def forget_state(self) -> None:
        """Remove what resuming needed."""
        self._files.remove(STATE)
        self._files.allow_only_written()

    def metrics(self) -> Metrics:
        if not self._files.exists(METRICS):
            raise RunError(
                f"{self.path}: has no test metrics, since training has not finished; continue it "
                "(ltocf train --resume)"
            )
        try:
            metrics: Metrics = json.loads(self._files.text(METRICS))
        except (ValueError, RecursionError):
            raise self._files.damaged(METRICS, "is not one that ltocf wrote") from None
        return metrics


def keep_events(path: Path) -> None:
    """Refuse to replace a run that holds events, which its service has promised to keep."""
    if (path / EVENTS).exists():
        raise RunError(
            f"{path}: holds the events of its service ({EVENTS}); choose another output, or move "
            "that file and serve it from there (ltocf serve --events FILE)"
        )


def library_versions() -> dict[str, str]:
    ours = {"ltocf": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in ("torch", "numpy", "numba", "scipy")}


def load_run(path: Path) -> tuple[Run, Model]:
    """A trained run and its model, from the same version of the files."""
    return _at_once(path, lambda run: run.load())


def load_scorer(path: Path) -> tuple[Run, Scorer]:
    """A trained run and its scorer, from the same version of the files."""
    return _at_once(path, lambda run: run.scorer())


def _at_once(path: Path, read: Callable[[Run], Contents]) -> tuple[Run, Contents]:
    for _ in range(ATTEMPTS):
        run = Run.open(path)
        try:
            return run, read(run)
        except ReplacedError:
            continue
    raise ReplacedError(f"{path}: other processes keep replacing it; try again later")


def as_run(run: Run | str | Path) -> Run:
    """The run itself, or the one at a path."""
    return run if isinstance(run, Run) else Run.open(Path(run))

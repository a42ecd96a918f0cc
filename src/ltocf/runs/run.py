"""A run directory: all that is needed to use a trained model, repeat its training or continue it.

config.toml         settings, data set, seed, library versions
data/               the split it was trained on, with ids and item names
weights.safetensors the weights kept
state.safetensors   while unfinished: what the next epoch depends on
history.jsonl       a line an epoch
metrics.json        the test metrics, looked at once, when training has ended
curves.png          loss, metrics and times over the epochs
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ltocf import __version__
from ltocf.config import RunConfig, read_config, to_toml
from ltocf.data.dataset import Dataset
from ltocf.errors import CheckpointError, ConfigError, DataError
from ltocf.ranking.metrics import Metrics
from ltocf.files import new_directory, replacing
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.runs.training import EpochRecord, TrainState

MARKER = "config.toml"
COUNTERS = ("epoch", "best_epoch", "best_metric", "stale")


class Run:
    """A run directory, open. Every file in it is written whole or not at all."""

    def __init__(self, path: Path, config: RunConfig, dataset: Dataset) -> None:
        self.path, self.config, self.dataset = path, config, dataset

    @classmethod
    def create(
        cls, path: Path, config: RunConfig, dataset: Dataset, *, overwrite: bool = False
    ) -> Run:
        """A new directory with the settings and the data, and no weights yet."""
        config = config.model_copy(update={"versions": library_versions()})
        with new_directory(
            path, marker=MARKER, overwrite=overwrite, error=CheckpointError
        ) as temporary:
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
        """A new directory with a trained model in it; an old one is replaced in one move."""
        with new_directory(
            path, marker=MARKER, overwrite=overwrite, error=CheckpointError
        ) as temporary:
            run = cls.create(temporary, config, dataset)
            run.finish(model, metrics)
        return cls(path, run.config, dataset)

    @classmethod
    def open(cls, path: Path) -> Run:
        if not (path / MARKER).is_file():
            raise CheckpointError(
                f"{path}: not a run of ours (no {MARKER}); make one with 'ltocf train'"
            )
        try:
            return cls(path, read_config(path / MARKER), Dataset.load(path / "data"))
        except (ConfigError, DataError) as error:
            raise CheckpointError(f"damaged run: {error}") from None

    def build(self) -> Model:
        """The model of this run, without its weights."""
        graph = BipartiteGraph(self.dataset.split.train)
        return build_model(graph, self.config.model_name, self.config.model_options)

    def load(self) -> Model:
        """The model of this run, with the weights that were kept."""
        model = self.build()
        weights = self._read(
            "weights.safetensors", "it has not been trained; continue with --resume"
        )
        try:
            model.load_state_dict(weights)
        except RuntimeError:
            raise self._damaged("weights.safetensors", "is of another model") from None
        return model.eval()

    def save_weights(self, model: Model) -> None:
        self._write("weights.safetensors", model.state_dict(), {})

    @property
    def finished(self) -> bool:
        return (self.path / "metrics.json").is_file()

    def save_state(self, state: TrainState) -> None:
        counters = {name: json.dumps(getattr(state, name)) for name in COUNTERS}
        self._write("state.safetensors", state.tensors, counters)

    def load_state(self) -> TrainState | None:
        """Where training stopped, or None if no epoch was finished."""
        path = self.path / "state.safetensors"
        if not path.exists():
            return None
        tensors = self._read(path.name, "")
        with safe_open(path, "pt") as file:
            counters = file.metadata() or {}
        if set(counters) != set(COUNTERS):
            raise self._damaged(path.name, "lacks its counters")
        return TrainState(**{k: json.loads(v) for k, v in counters.items()}, tensors=tensors)

    def save_history(self, records: list[EpochRecord]) -> None:
        with replacing(self.path / "history.jsonl", error=CheckpointError) as temporary:
            temporary.write_text("".join(record.to_json() + "\n" for record in records))

    def history(self) -> list[EpochRecord]:
        path = self.path / "history.jsonl"
        if not path.exists():
            return []
        try:
            return [EpochRecord(**json.loads(line)) for line in path.read_text().splitlines()]
        except (ValueError, TypeError):
            raise self._damaged(path.name, "is not a history of ours") from None

    def finish(self, model: Model, metrics: Metrics) -> None:
        """Keep the weights and the test metrics; what resuming needed is no longer of use."""
        self.save_weights(model)
        with replacing(self.path / "metrics.json", error=CheckpointError) as temporary:
            temporary.write_text(json.dumps(metrics, indent=2) + "\n")
        (self.path / "state.safetensors").unlink(missing_ok=True)

    def metrics(self) -> Metrics:
        try:
            metrics: Metrics = json.loads((self.path / "metrics.json").read_text())
            return metrics
        except (OSError, ValueError):
            raise CheckpointError(
                f"{self.path}: has no test metrics: training has not ended; continue with --resume"
            ) from None

    def _write(self, name: str, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        with replacing(self.path / name, error=CheckpointError) as temporary:
            whole = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(whole, temporary, metadata)

    def _read(self, name: str, if_missing: str) -> dict[str, Tensor]:
        path = self.path / name
        if not path.exists():
            raise CheckpointError(f"{self.path}: has no {name}: {if_missing}")
        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise self._damaged(name, f"cannot be read ({error})") from None

    def _damaged(self, name: str, what: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: damaged run: {name} {what}; train it again")


def library_versions() -> dict[str, str]:
    ours = {"ltocf": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in ("torch", "numpy", "numba", "scipy")}

"""What a search has tried, one line per trial, on disk: an interrupted search continues from it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ltocf.search.climbing import Options

FILE = "journal.jsonl"


@dataclass(frozen=True)
class Trial:
    """One candidate with some settings, fitted to train and judged on validation."""

    name: str
    options: Options
    recall: float
    ndcg: float
    seconds: float  # that fitting took
    judging_seconds: float
    elapsed: float  # since the search began
    epochs: int | None = None  # for a trained model: epochs to train for on all pairs

    @classmethod
    def unjudged(cls, name: str, options: Options) -> Trial:
        return cls(name, options, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def merit(self) -> float:
        return self.recall + self.ndcg

    @property
    def key(self) -> str:
        return key_of(self.name, self.options)

    @property
    def fit_key(self) -> str:
        """Identifies the fit. Recency is left out, since it only weighs the histories that the
        model is asked about."""
        return key_of(self.name, {k: v for k, v in self.options.items() if k != "recency"})

    @property
    def label(self) -> str:
        return label_of(self.name, self.options)


@dataclass(frozen=True)
class Saved:
    """A version of the run that the search made."""

    version: int
    label: str
    recall: float | None
    ndcg: float | None
    elapsed: float
    model: dict[str, Any] = field(default_factory=dict)
    provisional: bool = False  # a member has not been trained on all pairs


def key_of(name: str, options: Options) -> str:
    return name + json.dumps(options, sort_keys=True)


def label_of(name: str, options: Options) -> str:
    shown = (
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in sorted(options.items())
        if not isinstance(value, list | tuple)
    )
    return " ".join([name, *shown])


class Journal:
    """Trials and versions, in the order in which they came; kept in a file if there is one."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.trials: dict[str, Trial] = {}
        self.saved: list[Saved] = []
        for entry in _lines(file):
            self._take(entry)

    @property
    def elapsed(self) -> float:
        """Seconds of searching until the last line was written."""
        times = [trial.elapsed for trial in self.trials.values()]
        return max([*times, *(saved.elapsed for saved in self.saved)], default=0.0)

    def find(self, name: str, options: Options) -> Trial | None:
        return self.trials.get(key_of(name, options))

    def add_trial(self, trial: Trial) -> None:
        self._add({"trial": asdict(trial)})

    def add_saved(self, saved: Saved) -> None:
        self._add({"saved": asdict(saved)})

    def _add(self, line: dict[str, Any]) -> None:
        self._take(line)
        if self.file is None:
            return
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _take(self, line: dict[str, Any]) -> None:
        if "trial" in line:
            trial = Trial(**line["trial"])
            self.trials[trial.key] = trial
        else:
            self.saved.append(Saved(**line["saved"]))


def _lines(file: Path | None) -> list[dict[str, Any]]:
    """The complete lines. A line that a crash cut short does not count; it is ended here, so that
    the next one begins on a new line."""
    if file is None or not file.is_file():
        return []
    text = file.read_text(encoding="utf-8", errors="replace")
    whole, _, torn = text.rpartition("\n")
    if torn:
        os.truncate(file, len(whole.encode()) + 1 if whole else 0)
    return [json.loads(line) for line in whole.splitlines() if line]

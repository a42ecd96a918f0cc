"""Keeps the experiment that a service was started with up to date when versions of its run
change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ltocf.errors import ConfigError, RunError
from ltocf.runs.versions import in_use, version_path
from ltocf.service.engine import Engine
from ltocf.service.experiments.arms import check_version, parse_split
from ltocf.service.experiments.running import Experiment
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore

Load = Callable[[Path, EventStore, int], ServedModel]


class Trial:
    """`follow` starts the experiment, and starts a new one when its versions change: results for
    one candidate say nothing about the next."""

    def __init__(self, root: Path, experiment: str | None, shadow: str | None) -> None:
        if experiment is not None and shadow is not None:
            raise ConfigError("give an experiment or a shadow, not both (--experiment, --shadow)")
        self.root = root
        self.split = None if experiment is None else parse_split(experiment)
        self.shadow = None if shadow is None else check_version(shadow)
        self._running: dict[str, int] | None = None

    def versions(self) -> dict[str, int]:
        """The number of each version beside the one in use; a RunError if one does not exist."""
        words = [self.shadow] if self.split is None else [arm.version for arm in self.split.arms]
        return {word: self.version(word) for word in words if word and word != "current"}

    def follow(self, live: Engine, load: Load) -> None:
        wanted = self.versions()
        if wanted == self._running or (self.split is None and self.shadow is None):
            return
        models = {word: load(self.root, live.store, number) for word, number in wanted.items()}
        for model in models.values():
            model.warm_up()
        before, live.experiment = (
            live.experiment,
            Experiment(live.store, models, split=self.split, shadow=self.shadow),
        )
        self._running = wanted
        if before is not None:
            before.close()

    def version(self, word: str) -> int:
        number = int(word) if word.isdigit() else in_use(self.root)._asdict()[word]
        if number is None or not version_path(self.root, number).is_dir():
            made = " (make one with 'ltocf update --candidate')" if word == "candidate" else ""
            raise RunError(f"{self.root}: the experiment's version {word} does not exist{made}")
        return int(number)

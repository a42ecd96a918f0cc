"""A search on disk: its versions in the run's directory, and what it needs to continue.

search/config.toml    the settings that the search was given
search/data/          the data set as it was given
search/journal.jsonl  one line for each trial, and for each version that was saved
search/*.safetensors  trained candidates, each at its best epoch on validation
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ltocf.config import RunConfig, to_toml
from ltocf.data.dataset import Dataset
from ltocf.errors import RunError
from ltocf.models.base import Model
from ltocf.ranking.metrics import Metrics
from ltocf.runs.run import Run, load_run
from ltocf.runs.settings import read_config
from ltocf.runs.versions import (
    FIRST,
    MARKER,
    SEARCH,
    clear_unused,
    current_path,
    in_use,
    next_version,
    use_version,
    version_path,
)
from ltocf.search.journal import FILE, Journal, Saved
from ltocf.search.publishing import Choice
from ltocf.storage.files import new_directory


class RunKeeper:
    """Saves each model of a search as a version of the run. The first one is the run's directory
    itself, which also holds the files of the search."""

    def __init__(
        self,
        root: Path,
        config: RunConfig,
        dataset: Dataset,
        *,
        overwrite: bool = False,
        tell: Callable[[Saved], None] = lambda saved: None,
    ) -> None:
        self.root, self.config, self.dataset = root, config, dataset
        self.overwrite, self.tell = overwrite, tell
        self.journal = Journal()
        self.clock: Callable[[], float] = lambda: 0.0  # seconds of searching until now
        self.version: int | None = None

    @classmethod
    def resume(cls, root: Path, tell: Callable[[Saved], None]) -> RunKeeper:
        """Continue a search, unless something else has changed its run since."""
        folder = root / SEARCH
        keeper = cls(root, read_config(folder / MARKER), Dataset.load(folder / "data"), tell=tell)
        keeper.journal = Journal(folder / FILE)
        last = keeper.journal.saved[-1].version if keeper.journal.saved else FIRST
        if in_use(root).current != last:
            raise RunError(
                f"{root}: the version in use, {in_use(root).current}, was not made by the search; "
                f"return to one that was (ltocf rollback {root}), or search in another output"
            )
        keeper.version = last
        clear_unused(root)
        return keeper

    def save(self, choice: Choice, config: RunConfig, dataset: Dataset, model: Model) -> None:
        if self.version is None:
            self._save_first(config, dataset, model)
            version = FIRST
        else:
            version = next_version(self.root)
            Run.store(version_path(self.root, version), config, dataset, model, {})
            use_version(self.root, version)
        self.version = version
        recall, ndcg = (choice.recall, choice.ndcg) if choice.merit else (None, None)
        saved = Saved(
            version, choice.label, recall, ndcg, self.clock(), choice.model(), choice.provisional
        )
        self.journal.add_saved(saved)
        self.tell(saved)

    def load(self) -> Model:
        return load_run(self.root)[1]

    def finish(self, metrics: Metrics, tried: list[dict[str, object]]) -> None:
        """Save the test metrics of the version in use, and everything that was tried, beside it."""
        run = Run.at(current_path(self.root))
        run.save_comparison(tried)
        if metrics:
            run.save_metrics(metrics)

    def _save_first(self, config: RunConfig, dataset: Dataset, model: Model) -> None:
        with new_directory(
            self.root, marker=MARKER, overwrite=self.overwrite, error=RunError
        ) as temporary:
            run = Run.create(temporary, config, dataset)
            run.finish(model, {})
            folder = temporary / SEARCH
            folder.mkdir()
            (folder / MARKER).write_text(to_toml(self.config), encoding="utf-8")
            self.dataset.save(folder / "data")
        self.journal = _moved(self.journal, self.root / SEARCH / FILE)


def _moved(journal: Journal, file: Path) -> Journal:
    journal.file = file
    file.write_text("", encoding="utf-8")
    return journal

"""Recommender: fit a log, then ids in, ids out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.readers import LogSource
from ltocf.data.sources.any_log import AnyLog, as_dataset
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.progress import Progress, show_progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.recommend.answers import Answers, Fitted
from ltocf.runs.automatic import choose_model
from ltocf.runs.fitting import cut_for, fit
from ltocf.runs.pipeline import TEST_KS, starting_point
from ltocf.runs.run import Run, load_run
from ltocf.runs.settings import given_settings, make_config

BUDGET = 300.0  # seconds, of auto


class Recommender(Answers):
    """A model, the data it learned from, and the caller's ids for both.

    `Recommender("ltocf", epochs=40).fit(log)`, or `Recommender.load(run)`. Settings are those of
    `ltocf train`: `dim=32`, `learning_rate=0.01`, `end_time=5` and so on. With the model "auto",
    `budget=600` is how many seconds the comparison and the final fit may take.
    """

    def __init__(self, model: str = "ltocf", *, seed: int = 0, **settings: Any) -> None:
        self._set({"model": model, "seed": seed, **settings})

    def _set(self, params: dict[str, Any]) -> None:
        given = {key: value for key, value in params.items() if value is not None}
        self.budget = float(given.pop("budget", BUDGET))
        self.config = make_config({}, given)
        self._params = params
        self._fitted: Fitted | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the recommender was made with, as scikit-learn asks for it."""
        return dict(self._params)

    def set_params(self, **params: Any) -> Recommender:
        """Change what the recommender was made with; it has to be fitted again."""
        self._set(self._params | params)
        return self

    @classmethod
    def load(cls, run: str | Path) -> Recommender:
        """From a run directory, as `save` and `ltocf train` write it."""
        opened, model = load_run(Path(run))
        return cls.wrap(model, opened.dataset, opened.config)

    @classmethod
    def wrap(cls, model: Model, dataset: Dataset, config: RunConfig) -> Recommender:
        """Around a model that was trained on `dataset.split.train` with these settings."""
        recommender = cls.__new__(cls)
        recommender.config, recommender.budget = config, BUDGET
        recommender._params = given_settings(config)
        recommender._fitted = Fitted(model, dataset, model.scorer())
        return recommender

    def fit(
        self,
        log: AnyLog,
        *,
        user: str | None = None,
        item: str | None = None,
        time: str | None = None,
        rating: str | None = None,
        weight: str | None = None,
        threshold: float | None = None,
        items: LogSource | None = None,
        progress: Progress | bool = False,
    ) -> Recommender:
        """Learn from a data frame (polars, pandas), a sparse matrix, a file or folder of CSV, TSV
        or Parquet, or a prepared data set, whose test pairs are left out.

        Columns are guessed unless named; `weight` names one that says how strong an interaction is,
        and ratings below `threshold` are no likes. `items` is a table of what to display of items.
        `progress=True` shows a bar.
        """
        columns = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
        dataset = as_dataset(log, items=items, **columns, threshold=threshold)
        if self.config.model_name == "auto":
            with _shown(progress) as shown:
                self.config = choose_model(self.config, dataset.split, self.budget, shown).config
        dataset = cut_for(self.config, dataset)
        start = starting_point(self.config, dataset)
        with _shown(progress) as shown:
            model = fit(dataset, self.config, start=start, progress=shown).model
        self.config = self.config.model_copy(update={"dataset": dataset.name})
        self._fitted = Fitted(model, dataset, model.scorer())
        return self

    def save(self, run: str | Path, *, overwrite: bool = False) -> None:
        """Write a run directory, whole or not at all; every command of `ltocf` takes it."""
        metrics = self.evaluate() if len(self.dataset.split.test) else {}
        Run.store(Path(run), self.config, self.dataset, self.model, metrics, overwrite=overwrite)

    @property
    def fitted(self) -> Fitted:
        if self._fitted is None:
            raise ConfigError("nothing learned yet: call fit(log) first, or Recommender.load(run)")
        return self._fitted

    def evaluate(self, ks: Sequence[int] = TEST_KS) -> Metrics:
        """Metrics on the test pairs of the data set that was fitted."""
        split = self.dataset.split
        return evaluate(self.scorer, split.test, split.seen, ks)


def _shown(progress: Progress | bool) -> Any:
    """A context of the caller's own progress, a bar, or silence."""
    if progress is True:
        return show_progress()
    return nullcontext(progress or silent)

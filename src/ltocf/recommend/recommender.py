"""Recommender: fit a log, then ids in, ids out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.deadlines import Deadline, parse_seconds, usual_seconds
from ltocf.errors import ConfigError
from ltocf.forks import refuse_forked
from ltocf.progress import Progress, show_progress, silent
from ltocf.recommend.answers import Answers, Fitted
from ltocf.runs.loading import load_scorer
from ltocf.runs.run import Run
from ltocf.runs.settings import given_settings, make_config
from ltocf.scorers.scorer import Scorer
from ltocf.scorers.untouched import complete

if TYPE_CHECKING:
    from ltocf.data.ingest.readers import LogSource
    from ltocf.data.sources.any_log import AnyLog
    from ltocf.models.base import Model
    from ltocf.ranking.metrics import Metrics
    from ltocf.search.results import SearchResult


class Recommender(Answers):
    """A model, the data it learned from, and the caller's ids for both.

    `Recommender().fit(log)` searches for the best model, for as long as `budget` says: seconds, or
    "10m". `Recommender("ltocf", epochs=40).fit(log)` fits that one, and `Recommender.load(run)`
    reads one. Settings are those of `ltocf train`: `dim=32`, `learning_rate=0.01` and so on.
    """

    def __init__(self, model: str = "auto", *, seed: int = 0, **settings: Any) -> None:
        self._set({"model": model, "seed": seed, **settings})

    def _set(self, params: dict[str, Any]) -> None:
        given = {key: value for key, value in params.items() if value is not None}
        budget = given.pop("budget", None)
        self.budget = None if budget is None else parse_seconds(str(budget))
        # What was asked for; once fitted, `config` is what was found, and fit() asks anew.
        self.config = self._asked = make_config({}, given)
        if self.config.model_name == "auto" and self.config.model_options:
            from ltocf.search.candidates import check_given

            check_given(self.config)
        self._params = params
        self._fitted: Fitted | None = None

    def __repr__(self) -> str:
        if self._fitted is None:
            return f"Recommender({self.config.model_name!r}), not fitted"
        seen = self._fitted.seen
        return (
            f"Recommender({self.config.model_name!r}) of {seen.n_users:,} users and "
            f"{seen.n_items:,} items of {self._fitted.dataset.name!r}"
        )

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
        refuse_forked()
        opened, scorer = load_scorer(Path(run))
        return cls.of_run(opened, scorer)

    @classmethod
    def of_run(cls, run: Run, scorer: Scorer) -> Recommender:
        """Around a run that is open, and its scorer."""
        whole = complete(scorer, run.learned_from)
        return cls._around(run.config, Fitted(run.dataset, whole, run.learned_from, run.load))

    @classmethod
    def wrap(cls, model: Model, dataset: Dataset, config: RunConfig) -> Recommender:
        """Around a model that was trained on `dataset.split.train` with these settings."""
        return cls._around(config, _fitted_by(model, dataset))

    @classmethod
    def _around(cls, config: RunConfig, fitted: Fitted) -> Recommender:
        recommender = cls.__new__(cls)
        recommender.config, recommender._asked, recommender.budget = config, config, None
        recommender._params = given_settings(config)
        recommender._fitted = fitted
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
        skip_bad: bool = False,
        items: LogSource | None = None,
        progress: Progress | bool = False,
    ) -> Recommender:
        """Learn from a data frame (polars, pandas), a sparse matrix, a file or folder of CSV, TSV
        or Parquet, or a prepared data set, whose test pairs are left out.

        Columns are guessed unless named; `weight` names one that says how strong an interaction is,
        and ratings below `threshold` are no likes. `items` is a table of
        items and their attributes; all of them become items, touched or not.
        `progress=True` shows a bar.
        """
        from ltocf.data.sources.any_log import as_dataset
        from ltocf.runs.pipeline import starting_point
        from ltocf.training.fitting import fit

        refuse_forked()
        columns = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
        dataset = as_dataset(
            log, items=items, **columns, threshold=threshold, skip_bad=skip_bad or None
        )
        with _shown(progress) as shown:
            if self._asked.model_name == "auto":
                found = self._search(dataset, shown)
                model, dataset, config = found.model, found.dataset, found.config
            else:
                config = self._asked
                start = starting_point(config, dataset)
                fitted = fit(dataset, config, start=start, progress=shown)
                model, dataset = fitted.model, fitted.dataset
        self.config = config.model_copy(update={"dataset": dataset.name})
        self._fitted = _fitted_by(model, dataset)
        return self

    def _search(self, dataset: Dataset, progress: Progress) -> SearchResult:
        from ltocf.search.searching import Search

        seconds = self.budget or usual_seconds(len(dataset.split.train))
        return Search(dataset, self._asked, Deadline(seconds), progress=progress).run()

    def save(self, run: str | Path, *, overwrite: bool = False) -> None:
        """Write a run directory, whole or not at all; every command of `ltocf` takes it."""
        metrics = self.evaluate() if len(self.dataset.split.test) else {}
        Run.store(Path(run), self.config, self.dataset, self.model, metrics, overwrite=overwrite)

    @property
    def fitted(self) -> Fitted:
        if self._fitted is None:
            raise ConfigError("nothing learned yet: call fit(log) first, or Recommender.load(run)")
        refuse_forked()
        return self._fitted

    def evaluate(self, ks: Sequence[int] = ()) -> Metrics:
        """Metrics on the test pairs of the data set that was fitted; `ks` are lengths of lists."""
        from ltocf.ranking.metrics import evaluate
        from ltocf.training.testing import list_lengths, question

        split = self.dataset.split
        likeness = self.dataset.catalogue.likeness
        return evaluate(*question(self.scorer, split), ks or list_lengths(split), likeness=likeness)


def _fitted_by(model: Model, dataset: Dataset) -> Fitted:
    train = model.people
    return Fitted(dataset, complete(model.scorer(), train), train, lambda: model)


def _shown(progress: Progress | bool) -> Any:
    """A context of the caller's own progress, a bar, or silence."""
    if progress is True:
        return show_progress()
    return nullcontext(progress or silent)

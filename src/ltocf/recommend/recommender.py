"""Recommender: fit a log, then ids in, ids out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ltocf.config import RunConfig
from ltocf.data.catalogue import ItemChange
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Id
from ltocf.deadlines import Deadline, parse_seconds, usual_seconds
from ltocf.errors import ConfigError
from ltocf.machine.threads import refuse_forked
from ltocf.progress import Progress, show_progress, silent
from ltocf.ranking.top_k import length_of_list
from ltocf.recommend.boards import board
from ltocf.recommend.explain import Explanation, explain
from ltocf.recommend.ids import known_rows, rows_of_histories, unknown_ids
from ltocf.recommend.lists import (
    FittedModel,
    ListOptions,
    blocked_items,
    make_lists,
    similar_items,
    similar_users,
)
from ltocf.recommend.people import Person
from ltocf.recommend.rules import Rules
from ltocf.recommend.tables import items_table, ranked_table
from ltocf.runs.run import Run, load_scorer
from ltocf.runs.settings import given_settings, make_config
from ltocf.scorers.complete import complete
from ltocf.scorers.scorer import Scorer

if TYPE_CHECKING:
    from ltocf.data.ingest.readers import LogSource
    from ltocf.data.sources.any_log import AnyLog
    from ltocf.models.base import Model
    from ltocf.ranking.metrics import Metrics
    from ltocf.search.results import SearchResult


class Recommender:
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
        # Fitting replaces `config` by what was found; fitting again starts from what was asked for.
        self.config = self._asked = make_config({}, given)
        if self.config.model_name == "auto" and self.config.model_options:
            from ltocf.search.candidates import check_given

            check_given(self.config)
        self._params = params
        self._fitted: FittedModel | None = None

    def __repr__(self) -> str:
        if self._fitted is None:
            return f"Recommender({self.config.model_name!r}), not fitted"
        seen = self._fitted.seen
        return (
            f"Recommender({self.config.model_name!r}) of {seen.n_users:,} users and "
            f"{seen.n_items:,} items of {self._fitted.dataset.name!r}"
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, in the form that scikit-learn expects."""
        return dict(self._params)

    def set_params(self, **params: Any) -> Recommender:
        """Change arguments of the constructor; the recommender must then be fitted again."""
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
        return cls._around(run.config, FittedModel(run.dataset, whole, run.learned_from, run.load))

    @classmethod
    def wrap(cls, model: Model, dataset: Dataset, config: RunConfig) -> Recommender:
        """Around a model that was trained on `dataset.split.train` with these settings."""
        return cls._around(config, _fitted_by(model, dataset))

    @classmethod
    def _around(cls, config: RunConfig, fitted: FittedModel) -> Recommender:
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

    def with_items(self, changes: Sequence[ItemChange]) -> Recommender:
        """The same model with the catalogue after these changes, which is cheap: a new item is
        scored as if it had been there in training and nobody had touched it."""
        return self._around(self.config, self.fitted.with_items(changes))

    def save(self, run: str | Path, *, overwrite: bool = False) -> None:
        """Write a run directory, whole or not at all; every command of `ltocf` takes it."""
        metrics = self.evaluate() if len(self.dataset.split.test) else {}
        Run.store(Path(run), self.config, self.dataset, self.model, metrics, overwrite=overwrite)

    @property
    def fitted(self) -> FittedModel:
        if self._fitted is None:
            raise ConfigError("nothing learned yet: call fit(log) first, or Recommender.load(run)")
        refuse_forked()
        return self._fitted

    @property
    def model(self) -> Model:
        return self.fitted.model

    @property
    def dataset(self) -> Dataset:
        return self.fitted.dataset

    @property
    def scorer(self) -> Scorer:
        return self.fitted.scorer

    def recommend(
        self,
        users: Id | Iterable[Id],
        k: int = 10,
        *,
        keep_seen: bool = False,
        candidates: Iterable[Id] | None = None,
        exclude: Iterable[Id] = (),
        without: Id | Iterable[Id] = (),
        rules: Rules | None = None,
        strict: bool = False,
    ) -> pl.DataFrame:
        """The k best items of each user, or as many as there are, best first: columns user, rank,
        item, score, source, and what the data set has to display of an item.

        Items that a user has met, liked or not, are left out unless `keep_seen`. `candidates` are
        the only items to choose from, `exclude` are never chosen; ids in them that are no item are
        passed over. `rules` say more, such as `Rules.parse(["category=tea"], boost=["new:1.2"])`;
        `moved_by` then names the boosts of an item. What is not available is left out. Of many
        users the unknown are left out (`unknown_users` lists them), or with `strict` a DataError;
        so is one user who is unknown. A user without a history gets
        what is popular, and `source` is then 'popularity' instead of 'model'.
        `without` are items that count as if these users had never touched them: what the list
        would be, exactly, with the model as it is.
        """
        options = self._options(k, keep_seen, candidates, exclude, rules)
        ids = self.fitted.seen.user_ids
        rows = known_rows(ids, users, "user", strict=strict)
        removed = known_rows(self.fitted.seen.item_ids, without, "item", strict=True)
        people = [Person(row, without=removed) for row in rows.tolist()]
        lists = make_lists(self.fitted, people, options)
        return items_table(self.fitted, ids.column(rows, "user"), lists, options.rules)

    def recommend_new(
        self,
        history: Sequence[Id] | Mapping[Id, Sequence[Id]],
        k: int = 10,
        *,
        keep_seen: bool = False,
        candidates: Iterable[Id] | None = None,
        exclude: Iterable[Id] = (),
        rules: Rules | None = None,
        strict: bool = False,
        gradient_steps: int = 0,
    ) -> pl.DataFrame:
        """The same for people who were not there in training, from the items they have.

        One history, or many as {name: history}, which adds the column user. Unknown items in it
        are passed over, or with `strict` a DataError. An empty history gets what is popular, and
        `source` is then 'popularity'; so does, among many, one of unknown items only, which alone
        is a DataError. To a model with `recency` the order counts: the latest item comes last.
        With `gradient_steps`, each one's own vector takes that many on their history, which models
        without a graph cannot do without.
        """
        options = self._options(k, keep_seen, candidates, exclude, rules)
        ids, many = self.fitted.seen.item_ids, isinstance(history, Mapping)
        if isinstance(history, Mapping):
            names, rows = list(history), rows_of_histories(ids, history, strict=strict)
        else:
            names, rows = [""], [known_rows(ids, history, "item", strict=strict)]
        people = list(map(Person.of_history, rows))
        lists = make_lists(self.fitted, people, options, gradient_steps=gradient_steps)
        owners = pl.Series("user", names, strict=False)
        table = items_table(self.fitted, owners, lists, options.rules)
        return table if many else table[:, 1:]

    def _options(
        self,
        k: int,
        keep_seen: bool,
        candidates: Iterable[Id] | None,
        exclude: Iterable[Id],
        rules: Rules | None,
    ) -> ListOptions:
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        blocked = blocked_items(seen.item_ids, candidates, exclude)
        return ListOptions(k, keep_seen, blocked, rules or Rules())

    def unknown_users(self, users: Iterable[Id]) -> list[Id]:
        """Those of the users that were not in the training data, in their order."""
        return unknown_ids(self.fitted.seen.user_ids, users)

    def unknown_items(self, items: Iterable[Id]) -> list[Id]:
        return unknown_ids(self.fitted.seen.item_ids, items)

    def similar_items(
        self, items: Id | Iterable[Id], k: int = 10, *, rules: Rules | None = None
    ) -> pl.DataFrame:
        """The k items most like each, as the rules allow: columns item, rank, similar, score, and
        the attributes of the similar one. The score is the cosine of the two items' vectors, or for
        a closed form its score for somebody who has only that item."""
        options = self._options(k, True, None, (), rules)
        ids = self.fitted.seen.item_ids
        rows = known_rows(ids, items, "item", strict=True)
        lists = similar_items(self.fitted, rows, options)
        return items_table(self.fitted, ids.column(rows, "item"), lists, options.rules, "similar")

    def similar_users(self, users: Id | Iterable[Id], k: int = 10) -> pl.DataFrame:
        """The k users most like each, by the cosine of their vectors, or for a closed form of
        their histories: columns user, rank, similar, score."""
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_users)
        rows = known_rows(seen.user_ids, users, "user", strict=True)
        ids = seen.user_ids.ids
        lists = similar_users(self.fitted, rows, k)
        return ranked_table(seen.user_ids.column(rows, "user"), lists, ids.rename("similar"))[0]

    def board(
        self,
        kind: str = "popular",
        k: int = 10,
        *,
        window: timedelta | None = None,
        rules: Rules | None = None,
    ) -> pl.DataFrame:
        """The board 'popular', 'trending' or 'new', which is the same for everybody: columns rank,
        item, touches (or growth, or arrived), and the items' attributes."""
        return board(self.dataset, kind, k, window=window, rules=rules)

    def explain(self, user: Id, item: Id) -> Explanation:
        """The exact reasons of the score that `recommend` gives with `keep_seen`."""
        ids = self.fitted.seen.user_ids
        rows = ids.rows([user], kind="user")
        return explain(self.fitted, Person(int(rows[0])), ids[rows][0], item)

    def explain_new(self, history: Sequence[Id], item: Id, *, strict: bool = False) -> Explanation:
        """The same for somebody known by their history alone."""
        rows = known_rows(self.fitted.seen.item_ids, history, "item", strict=strict)
        return explain(self.fitted, Person.of_history(rows), None, item)

    def evaluate(self, ks: Sequence[int] = ()) -> Metrics:
        """Metrics on the test pairs of the data set that was fitted; `ks` are lengths of lists."""
        from ltocf.ranking.metrics import evaluate
        from ltocf.training.protocol import list_lengths, question

        split = self.dataset.split
        likeness = self.dataset.catalogue.likeness
        return evaluate(*question(self.scorer, split), ks or list_lengths(split), likeness=likeness)


def _fitted_by(model: Model, dataset: Dataset) -> FittedModel:
    train = model.people
    return FittedModel(dataset, complete(model.scorer(), train), train, lambda: model)


def _shown(progress: Progress | bool) -> Any:
    """A context of the caller's own progress, a bar, or silence."""
    if progress is True:
        return show_progress()
    return nullcontext(progress or silent)

"""A model in use, its data and what to show of its items. Immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.catalogue import ItemChange
from ltocf.data.ingest.cells.kinds import count_of_kind, parse_kinds
from ltocf.data.interactions import Id, Interactions, Rows, shorten_id
from ltocf.data.times import clock
from ltocf.errors import ConfigError
from ltocf.recommend.explain import reasons_of
from ltocf.recommend.lists import FittedModel, ItemList, ListOptions, make_lists
from ltocf.recommend.people import NOTHING, Person
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import ItemRules, Rules
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.runs.run import Portrait, Run
from ltocf.scorers.scorer import NOBODY
from ltocf.service.json_text import numbers_to_json, to_json
from ltocf.service.problems import Unknown
from ltocf.service.store.events import Event, EventStore
from ltocf.training.records import EpochRecord

KEPT_TEXTS, MANY = 50_000, 16
MOST_TIMES = 100  # an item shown more often counts as shown this often
LEARNED = "events"  # in a data set's origin: the last event of each store that went into it


@dataclass(frozen=True, eq=False)
class ServedModel:
    """`trained` is the number of the last event that the model has learned from."""

    recommender: Recommender
    version: str = "1"
    trained: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)  # on the test set
    epochs: Sequence[EpochRecord] = ()  # of its training
    digest: str = ""  # of the run's files
    # What the page draws of it; for a model in memory, computed on request.
    portrait: Portrait | None = None
    weigh: str | None = None  # weights of kinds of events, if the store has its own

    @classmethod
    def of_run(cls, run: Run, version: str, store: EventStore, digest: str = "") -> ServedModel:
        """A run's model, and the last event of this store that it has learned from."""
        recommender = Recommender.of_run(run, run.scorer())
        trained = run.dataset.origin.get(LEARNED, {}).get(store.id, 0)
        metrics = run.metrics() if run.finished else {}
        history, portrait = run.history(), run.portrait()
        return cls(recommender, version, trained, metrics, history, digest, portrait, store.weigh)

    def with_items(self, changes: Sequence[ItemChange]) -> ServedModel:
        """The same model with the catalogue after these changes."""
        return replace(self, recommender=self.recommender.with_items(changes))

    @cached_property
    def fitted(self) -> FittedModel:
        return self.recommender.fitted

    @cached_property
    def seen(self) -> Interactions:
        """The pairs that known users have liked."""
        return self.fitted.seen

    @cached_property
    def item_ids(self) -> list[Id]:
        return self.seen.item_ids.ids.to_list()

    @cached_property
    def microseconds(self) -> int:
        return clock(self.fitted.train)

    @property
    def names(self) -> list[str]:
        """The name of each item, the same as in the shell."""
        return self.fitted.dataset.catalogue.names

    @cached_property
    def searched(self) -> pl.Series:
        """Names and ids in lower case, to search in."""
        ids = self.seen.item_ids.ids.cast(pl.String)
        return (pl.Series(self.names) + "\n" + ids).str.to_lowercase()

    @cached_property
    def explains(self) -> bool:
        """Whether scores have exact reasons."""
        first = np.zeros(1, np.int32)
        try:
            reasons_of(self.fitted, Person.of_history(first), first)
        except ConfigError:
            return False
        return True

    def item(self, row: int) -> dict[str, Any]:
        """An item as answers show it."""
        return _item(row, self.item_ids, self.names, self._about)

    @cached_property
    def item_text(self) -> Callable[[int], str]:
        """The same as JSON without braces, to be part of an object. Texts are cached, since most
        lists draw on a small part of the items."""
        # The cache must not refer to the model, which refers to the cache: a model that is no
        # longer served would stay in memory, since the garbage collector hardly ever runs.
        columns = self.item_ids, self.names, self._about
        return lru_cache(KEPT_TEXTS)(lambda row: to_json(_item(row, *columns))[1:-1])

    def entries(self, found: ItemList, rules: Rules, reasons: Sequence[str] = ()) -> str:
        """A list as answers show it, as JSON: ranked items, their scores, which boosts moved them,
        and the reasons, if there are any."""
        boosts, text = self.rules_on(rules), self.item_text
        rows, scores = found.items.tolist(), numbers_to_json(found.scores.tolist())
        entries = [
            f'"rank":{place},{text(row)},"score":{score}'
            for place, (row, score) in enumerate(zip(rows, scores, strict=True), start=1)
        ]
        if boosts.boosted:
            for place, row in enumerate(rows):
                if moved_by := boosts.notes(row):
                    entries[place] += f',"moved_by":{to_json(", ".join(moved_by))}'
        if reasons:
            pairs = zip(entries, reasons, strict=True)
            entries = [f'{entry},"reasons":{theirs}' for entry, theirs in pairs]
        return "[{" + "},{".join(entries) + "}]" if entries else "[]"

    def item_row(self, id_: Id) -> int:
        return int(self.item_rows([id_])[0])

    def item_rows(self, ids: Sequence[Id]) -> Rows:
        """Unknown if one of them is not an item of this model."""
        rows = self.seen.item_ids.find(ids)
        if (rows < 0).any():
            first = ids[int(np.flatnonzero(rows < 0)[0])]
            raise Unknown(f"unknown item {shorten_id(first)}")
        return rows

    def user_row(self, id_: Id) -> int:
        """The user's row, or NOBODY for a user who is not in the data set."""
        return int(self.seen.user_ids.find([id_])[0])

    def person(self, user: str, events: Iterable[Event]) -> Person:
        """A person with these events, in the order of their numbers, and with their history in the
        data set unless they asked to be forgotten."""
        row = self.user_row(user)
        since: list[Event] = []
        for event in events:
            if event.item is None:
                row, since = NOBODY, []
            else:
                since.append(event)
        if not since:
            return Person(row)
        items = self.seen.item_ids.find([event.item for event in since if event.item is not None])
        times = np.array([event.time // self.microseconds for event in since], dtype=np.int64)
        counts = np.array([self.counts_of(event) for event in since])
        items, times, counts = items[items >= 0], times[items >= 0], counts[items >= 0]
        if (counts > 0).all():
            return Person(row, items, times)
        return self._settled(row, items, times, counts)

    def counts_of(self, event: Event) -> float:
        return count_of_kind(event.kind, self.kinds)

    @cached_property
    def kinds(self) -> dict[str, float]:
        """The store's own weights of kinds, or those of the data set's log."""
        return parse_kinds(self.weigh or self.fitted.dataset.origin.get("options", {}).get("weigh"))

    def _settled(
        self, row: int, items: Rows, times: NDArray[np.int64], counts: NDArray[np.float64]
    ) -> Person:
        """A person some of whose likes were taken back: an item stays liked if its likes outweigh
        what was taken back."""
        negative = np.unique(items[counts < 0])
        left = np.array([counts[items == item].sum() for item in negative])
        old = np.zeros(len(negative), dtype=bool)
        if row != NOBODY:
            begin, end = self.seen.indptr[row], self.seen.indptr[row + 1]
            owned, strengths = self.seen.items[begin:end], self.seen.weights
            for place, item in enumerate(negative):
                (at,) = np.flatnonzero(owned == item)[:1] if item in owned else (-1,)
                if at >= 0:
                    old[place] = True
                    left[place] += 1.0 if strengths is None else strengths[begin + at]
        gone = negative[left <= 0]
        liked = (counts > 0) & ~np.isin(items, gone)
        # A model such as MF uses no histories: a like that was taken back stays in its vectors.
        without = negative[(left <= 0) & old] if self.fitted.scorer.follows_history else NOTHING
        return Person(row, items[liked], times[liked], without=without, met=gone)

    def shown(self, times: Mapping[str, int]) -> Rows:
        """The rows of items that a person was shown, repeated for each time."""
        rows = self.seen.item_ids.find(list(times))
        counts = np.minimum(np.fromiter(times.values(), np.int64, len(times)), MOST_TIMES)
        return np.repeat(rows[rows >= 0], counts[rows >= 0])

    def history(self, person: Person) -> list[tuple[int, int | None]]:
        """The items of a person and their times in microseconds, the latest first."""
        rows, times = person.items, person.times
        clocked: NDArray[np.bool_] = np.ones(len(rows), dtype=bool)
        if person.row != NOBODY:
            old = slice(self.seen.indptr[person.row], self.seen.indptr[person.row + 1])
            stamps = self.seen.timestamps
            before = np.full(old.stop - old.start, -1) if stamps is None else stamps[old]
            rows = np.concatenate([self.seen.items[old], rows])
            times = np.concatenate([before, times])
            # Smaller numbers only give an order.
            clocked = np.concatenate([before > 10**8, clocked])
        order = np.lexsort((rows, -times))
        listed: dict[int, int | None] = {}
        for place in order:  # an item that occurs twice has its latest time
            moment = int(times[place]) * self.microseconds if clocked[place] else None
            listed.pop(int(rows[place]), None)
            listed[int(rows[place])] = moment
        return list(listed.items())

    def is_cold(self, person: Person) -> bool:
        """Whether the person has no history."""
        return not len(person.has(self.seen))

    def rules_on(self, rules: Rules) -> ItemRules:
        """These rules by the rows of items; a ConfigError if they name attributes that items do not
        have."""
        return rules.on(shelf_of(self.fitted.dataset))

    def blocked_by(self, rules: Rules) -> NDArray[np.bool_]:
        """Which items the rules exclude for everybody. (n_items,)"""
        blocked = self.rules_on(rules).blocked
        nothing = np.zeros(len(self.item_ids), dtype=bool)
        return nothing if blocked is None else blocked[: len(nothing)]

    def warm_up(self) -> None:
        """Compile and compute what the first request would otherwise wait for."""
        assert len(self.names) == len(self.searched)
        self.rules_on(Rules())
        _ = self.explains

    def warm_up_many(self) -> None:
        """Load what is needed only for many lists at a time. Some models have compiled code for
        that, and a service can start before it is loaded."""
        some = min(MANY, self.seen.n_users)
        make_lists(self.fitted, [Person(row) for row in range(some)], ListOptions(1))

    @cached_property
    def _display(self) -> pl.DataFrame:
        table = self.recommender.dataset.item_names
        return pl.DataFrame() if table is None else table

    @cached_property
    def _about(self) -> dict[str, list[Any]]:
        """The other columns, as values for JSON."""
        columns = {}
        for column in self._display.get_columns():
            if column.name == "name":
                continue
            plain = column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.String, pl.List)
            values = column if plain else column.cast(pl.String, strict=False)
            columns[column.name] = (
                values.fill_nan(None) if values.dtype.is_float() else values
            ).to_list()
        return columns


def _item(
    row: int, ids: Sequence[Id], names: Sequence[str], about: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    known = {name: values[row] for name, values in about.items() if values[row] is not None}
    return {"item": str(ids[row]), "name": names[row], "about": known}

"""The live catalogue: the model in use, combined with the changes of items since."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ltocf.data.catalogue import Catalogue, ItemChange
from ltocf.errors import DataError
from ltocf.service.problems import Conflict
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.store.items import item_changes

log = logging.getLogger("ltocf.service")
MOST_ATTRIBUTES = 500  # of a catalogue, since building it takes time from lists


class LiveItems:
    """A model is combined with the changed catalogue once per change, by the thread that notices
    the change."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._changes: dict[str, ItemChange] = {}  # for each item, all of its changes combined
        self._last = 0
        self._made: WeakKeyDictionary[ServedModel, ServedModel] = WeakKeyDictionary()
        self._lock = threading.RLock()

    def refresh(self) -> None:
        """Read the changes committed since the last call, by any process."""
        with self._lock:
            changes, last = item_changes(self.store, self._last)
            if last == self._last:
                return
            self._changes |= {str(change.item): change for change in changes}
            self._last = last
            for model in list(self._made):
                self._made[model] = self._make(model)

    def beside(self, model: ServedModel) -> ServedModel:
        """The model with the live catalogue."""
        if not self._last:
            return model
        known = self._made.get(model)
        if known is None:
            with self._lock:
                known = self._made.get(model) or self._make(model)
                self._made[model] = known
        return known

    def check(self, model: ServedModel, amounts: Sequence[ItemChange]) -> None:
        """A Conflict if the catalogue cannot be built with these changes (for each item, all of its
        changes combined). If they were stored, no process could build it."""
        catalogue = model.recommender.dataset.catalogue
        with self._lock:
            self.refresh()
            items = {str(change.item) for change in amounts}
            others = [one for item, one in self._changes.items() if item not in items]
        try:
            changed = _with_fitting(catalogue, others, present(catalogue, amounts))
        except DataError as misfit:
            raise Conflict(str(misfit)) from None
        if changed.table.width > MOST_ATTRIBUTES:
            raise Conflict(f"items may have {MOST_ATTRIBUTES} different attributes, not more")

    def _make(self, model: ServedModel) -> ServedModel:
        catalogue = model.recommender.dataset.catalogue
        changes = present(catalogue, list(self._changes.values()))
        if not changes:
            return replace(model)
        try:
            served = model.with_items(changes)
        except DataError:
            served = model.with_items(fitting(catalogue, changes))
        served.warm_up()
        return served


def present(catalogue: Catalogue, changes: Sequence[ItemChange]) -> list[ItemChange]:
    """Without the changes of items that were added and removed again."""
    rows = catalogue.ids.find([change.item for change in changes])
    return [one for one, row in zip(changes, rows, strict=True) if row >= 0 or not one.hidden]


def fitting(catalogue: Catalogue, changes: Sequence[ItemChange]) -> list[ItemChange]:
    """Those that fit the catalogue and each other; earlier changes take precedence. Some may not
    fit, since they were checked against another version, in which an attribute had another kind."""
    kept: list[ItemChange] = []
    waiting = [present(catalogue, changes)]
    while waiting:
        some = waiting.pop()
        try:
            catalogue.with_changes(kept + some)
        except DataError as misfit:
            if len(some) == 1:
                log.warning(f"catalogue: a change is ignored: {misfit}")
            else:  # bisect: there may be many changes, and few that do not fit
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
        else:
            kept += some
    return kept


def _with_fitting(
    catalogue: Catalogue, others: Sequence[ItemChange], these: Sequence[ItemChange]
) -> Catalogue:
    """The catalogue with these changes and with those of the others that fit; a DataError if these
    do not."""
    try:
        return catalogue.with_changes([*present(catalogue, others), *these])
    except DataError:  # to find out which change does not fit takes longer
        return catalogue.with_changes([*fitting(catalogue, others), *these])

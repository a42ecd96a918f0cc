"""The catalogue as it is now: a model that is served, beside what became known of items since."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from weakref import WeakKeyDictionary

from ltocf.data.catalogue import ItemChange
from ltocf.errors import DataError
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.store.items import item_changes

log = logging.getLogger("ltocf.service")


class LiveItems:
    """A model beside its catalogue is made once for each change, by whoever notices it."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._changes: dict[str, ItemChange] = {}  # of each item what all amount to
        self._last = 0
        self._made: WeakKeyDictionary[ServedModel, ServedModel] = WeakKeyDictionary()
        self._lock = threading.RLock()

    def refresh(self) -> None:
        """Take in what was committed since, by this process or another."""
        with self._lock:
            changes, last = item_changes(self.store, self._last)
            if last == self._last:
                return
            self._changes |= {str(change.item): change for change in changes}
            self._last = last
            for model in list(self._made):
                self._made[model] = self._make(model)

    def beside(self, model: ServedModel) -> ServedModel:
        """The model as it is to be served now."""
        if not self._last:
            return model
        known = self._made.get(model)
        if known is None:
            with self._lock:
                known = self._made.get(model) or self._make(model)
                self._made[model] = known
        return known

    def _make(self, model: ServedModel) -> ServedModel:
        ids = model.recommender.dataset.catalogue.ids
        rows = ids.find(list(self._changes))
        changes = [
            change
            for change, row in zip(self._changes.values(), rows, strict=True)
            if row >= 0 or not change.hidden  # what came and went leaves no trace
        ]
        if not changes:
            return replace(model)
        try:
            served = model.with_items(changes)
        except DataError:  # of another version, in which an attribute was of another kind
            served = _one_by_one(model, changes)
        served.warm_up()
        return served


def _one_by_one(model: ServedModel, changes: list[ItemChange]) -> ServedModel:
    """With those that suit its catalogue."""
    catalogue, kept = model.recommender.dataset.catalogue, []
    for change in changes:
        try:
            catalogue.with_changes([change])
        except DataError as misfit:
            log.warning(f"catalogue: a change is passed over: {misfit}")
        else:
            kept.append(change)
    return model.with_items(kept)

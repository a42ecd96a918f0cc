"""What is popular now: the data set's counts and those of the events since, kept up to date."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore


class Popularity:
    """How many people have each item. Each count adds only the events since the last one; after a
    person was forgotten, it starts again from all events."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._served: ServedModel | None = None
        self._counted = 0  # number of the last event that was counted
        self._counts: NDArray[np.float32] = np.zeros(0, dtype=np.float32)

    def of(self, served: ServedModel) -> NDArray[np.float32]:
        """(n_items,)"""
        if served is self._served:
            return self._counts
        return served.seen.item_degrees.astype(np.float32)  # until the events are counted too

    def count(self, served: ServedModel) -> None:
        """Add the events since the last count."""
        last = self.store.last()
        anew = served is not self._served or bool(self.store.forgotten(self._counted))
        after = served.trained if anew else self._counted
        if not anew and last <= after:
            return
        counts = served.seen.item_degrees.astype(np.float32) if anew else self._counts.copy()
        news = self.store.item_counts(served.trained, since=after, until=last, kinds=served.kinds)
        rows = served.seen.item_ids.find(list(news))
        np.add.at(counts, rows[rows >= 0], np.array(list(news.values()))[rows >= 0])
        self._counts, self._counted, self._served = counts, last, served

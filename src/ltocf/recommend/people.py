"""Who a list is for: a known user, a known user and their events since, or a bare history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.recommend.new_users import score_new
from ltocf.scorers.scorer import NOBODY, Scorer, Scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NOTHING, NEVER = np.empty(0, np.int32), np.empty(0, np.int64)


class Person(NamedTuple):
    """A user's row in the training data, or NOBODY, and the items that they have touched since."""

    row: int
    items: Rows = NOTHING  # in any order, repetitions allowed
    times: NDArray[np.int64] = NEVER  # of each item, in the unit of the training data's times
    without: Rows = NOTHING  # items that are left out of their history, as if never touched
    shown: Rows = NOTHING  # items that they were shown and did not take, once for each time
    met: Rows = NOTHING  # items sent back or hidden: not in their history, never listed

    @classmethod
    def of_history(cls, items: Rows) -> Person:
        """A new person, who touched these items in this order."""
        return cls(NOBODY, items, np.arange(len(items)))

    @property
    def changed(self) -> bool:
        """Whether their history differs from that in the training data."""
        return len(self.items) > 0 or len(self.without) > 0

    def has(self, pairs: Interactions) -> Rows:
        """Their items in these pairs and since, repetitions included."""
        if self.row == NOBODY:
            items = self.items
        elif len(self.items):
            items = np.concatenate([pairs.items_of(self.row), self.items])
        else:
            items = pairs.items_of(self.row)
        return items[~np.isin(items, self.without)] if len(self.without) else items


def joined_histories(train: Interactions, people: Sequence[Person]) -> csr_array:
    """Each one's old and new items by time, as `histories_of` weighs them; for an item that occurs
    twice the first time counts. (len(people), n_items)

    Old items without times came before everything else.
    """
    indptr, items, entries = [0], [NOTHING], [np.empty(0, np.float32)]
    for person in people:
        owned, times = person.items, person.times
        if person.row != NOBODY:
            old = slice(train.indptr[person.row], train.indptr[person.row + 1])
            earliest = np.full(old.stop - old.start, np.iinfo(np.int64).min)
            before = earliest if train.timestamps is None else train.timestamps[old]
            owned = np.concatenate([train.items[old], owned])
            times = np.concatenate([before, times])
        if len(person.without):
            kept = ~np.isin(owned, person.without)
            owned, times = owned[kept], times[kept]
        order = np.lexsort((times, owned))
        distinct, first = np.unique(owned[order], return_index=True)
        times = times[order][first]
        later = len(times) - np.searchsorted(np.sort(times), times, side="right")
        indptr.append(indptr[-1] + len(distinct))
        items.append(distinct.astype(np.int32))
        entries.append((1 / (1 + later)).astype(np.float32))
    from scipy.sparse import csr_array  # imported here, since it takes long to load

    arrays = (np.concatenate(entries), np.concatenate(items), np.array(indptr))
    return csr_array(arrays, shape=(len(people), train.n_items))


def score_people(
    scorer: Scorer,
    train: Interactions,
    people: Sequence[Person],
    *,
    gradient_steps: int = 0,
    most: Sequence[int] | None = None,
) -> Scores:
    """Scores of all items for each person, in an array that the caller may change. (len(people),
    n_items)

    A known user keeps their own part. Somebody without new events is scored as in the training
    data, and somebody without any history gets zeros. With `gradient_steps`, all are new, and the
    vector of each takes that many steps on their history. With `most`, a score that is not among so
    many best ones of a person may be -inf.
    """
    if any(len(person.without) for person in people) and not scorer.follows_history:
        raise ConfigError(
            "this model's lists do not follow from a history, so it cannot leave an item out of "
            "one; use ltocf, lightgcn or a closed form such as gfcf"
        )
    rows = np.array([person.row for person in people], dtype=np.int32)
    changed = np.array([person.changed for person in people], dtype=bool)
    as_ever = ~changed & (rows != NOBODY)

    def of_known(some: NDArray[np.bool_]) -> Scores:
        return scorer(rows[some]) if most is None else scorer.best_scores(rows[some], sizes(some))

    def sizes(some: NDArray[np.bool_]) -> Sequence[int]:
        assert most is not None
        return [size for size, wanted in zip(most, some, strict=True) if wanted]

    if as_ever.all():
        return of_known(as_ever)
    scores = np.zeros((len(people), train.n_items), np.float32)
    if as_ever.any():
        scores[as_ever] = of_known(as_ever)
    if changed.any():
        joined = joined_histories(train, [person for person in people if person.changed])
        if gradient_steps:
            found = score_new(scorer, joined, steps=gradient_steps)
        elif most is not None:
            found = scorer.best_from_history(joined, rows[changed], sizes(changed))
        else:
            found = scorer.from_history(joined, rows[changed])
        if changed.all():
            return found
        scores[changed] = found
    return scores

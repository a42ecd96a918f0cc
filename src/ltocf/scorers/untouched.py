"""Items that nobody has touched, scored by the items that are most like them by their tags.

A model of who touched what has nothing to say of such an item. Its score is then the mean of the
scores of the touched items with the most similar tags, weighed by how similar: linear in what the
model says, so that reasons stay exact. An item that comes to a running service is scored in the
same way as one that was there in training, so that both are the same to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ltocf.data.interactions import Interactions, Rows
from ltocf.ranking.top_k import Products
from ltocf.scorers.attributes import tag_vectors
from ltocf.scorers.scorer import NOBODY, Formula, Scorer, Scores, Terms, Vectors

NEAREST = 20  # touched items that speak for one that nobody has touched
SOME_ROWS = 256  # of such items compared at a time


class UntouchedScorer(Scorer):
    """`known` scores the first items; the rows `cold` of all items are `near` of its scores.

    `near` is (len(cold), items that `known` scores). A history's items beyond those add nothing,
    as those that nobody touched in training do.
    """

    def __init__(self, known: Scorer, n_known: int, n_items: int, cold: Rows, near: csr_array):
        self.known, self.n_known, self.n_items = known, n_known, n_items
        self.cold, self.near = cold, near

    def __call__(self, users: Rows) -> Scores:
        return self._with_cold(self.known(users))

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        return self._with_cold(self.known.from_history(self._known_part(histories), own))

    def _known_part(self, histories: csr_array) -> csr_array:
        if histories.shape[1] == self.n_known:
            return histories
        return csr_array(histories[:, : self.n_known])

    def _with_cold(self, scores: Scores) -> Scores:
        whole = scores
        if self.n_items > self.n_known:
            whole = np.zeros((len(scores), self.n_items), np.float32)
            whole[:, : self.n_known] = scores
        whole[:, self.cold] = (self.near @ scores.T).T
        return whole

    @property
    def follows_history(self) -> bool:
        return self.known.follows_history

    @property
    def knows_untouched(self) -> bool:
        return True

    def similar_items(self, items: Rows) -> Scores:
        """Of a cold item, the mean of what is similar to the items that speak for it."""
        found = np.zeros((len(items), self.n_items), np.float32)
        places = np.searchsorted(self.cold, items)
        is_cold = self.cold[np.minimum(places, len(self.cold) - 1)] == items
        if (~is_cold).any():
            found[~is_cold] = self._with_cold(self.known.similar_items(items[~is_cold]))
        for row in np.flatnonzero(is_cold).tolist():
            speakers, shares = self._speakers(int(places[row]))
            if len(speakers):
                alike = self._with_cold(self.known.similar_items(speakers))
                found[row] = shares @ alike
        return found

    def _speakers(self, place: int) -> tuple[Rows, NDArray[np.float32]]:
        """The items that speak for the cold one at this place, and how much each counts."""
        entries = slice(self.near.indptr[place], self.near.indptr[place + 1])
        return self.near.indices[entries].astype(np.int32), self.near.data[entries]

    def similar_users(self, users: Rows) -> Scores:
        return self.known.similar_users(users)

    def explain(self, items: Rows, history: csr_array, user: int = NOBODY) -> Terms:
        mix = self._mix(items)
        needed = np.flatnonzero(np.diff(csr_array(mix.T).indptr)).astype(np.int32)
        inside = np.flatnonzero(history.indices < self.n_known)
        terms = self.known.explain(needed, self._known_part(history), user)
        shares = mix[:, needed].toarray().astype(np.float64)
        of_history = np.zeros((history.nnz, len(items)))
        of_history[inside] = terms.of_history @ shares.T
        return Terms(shares @ terms.own, of_history, shares @ terms.popularity)

    def _mix(self, items: Rows) -> csr_array:
        """By what each item's score is a sum of the scores of known ones. (k, n_known)"""
        rows = [nothing_near(1, self.n_known)]
        for item in items.tolist():
            place = int(np.searchsorted(self.cold, item))
            if place < len(self.cold) and self.cold[place] == item:
                rows.append(self.near[[place]])
            else:
                one = (np.ones(1, np.float32), ([0], [item]))
                rows.append(csr_array(one, shape=(1, self.n_known)))
        return csr_array(vstack(rows, format="csr"))[1:]

    def explain_mean(self, history: csr_array, user: int = NOBODY) -> Terms:
        """As a member of a blend, where cold items say nothing: zeros count in the mean too."""
        assert not self.near.nnz, "cold items are scored by a whole blend, not by its members"
        mean = self.known.explain_mean(self._known_part(history), user)
        share = self.n_known / self.n_items
        of_history = np.zeros((history.nnz, 1))
        of_history[history.indices < self.n_known] = share * mean.of_history
        return Terms(share * mean.own, of_history, share * mean.popularity)

    def with_recency(self, recency: float) -> Scorer | None:
        known = self.known.with_recency(recency)
        if known is None:
            return None
        return UntouchedScorer(known, self.n_known, self.n_items, self.cold, self.near)

    def vectors(self) -> Vectors | None:
        known = self.known.vectors()
        if known is None:
            return None
        items = self._with_cold(np.ascontiguousarray(known.items.T)).T
        history = known.history
        if history is not None:
            more = np.zeros((self.n_items - self.n_known, history.shape[1]), history.dtype)
            history = np.concatenate([history, more])
        bias = None if known.bias is None else self._with_cold(known.bias[None].copy())[0]
        return Vectors(known.users, np.ascontiguousarray(items), history, bias)

    def products(self) -> Products | None:
        known = self.known.products()
        if known is None:
            return None
        items = self._with_cold(np.ascontiguousarray(known.items.T)).T
        return Products(np.ascontiguousarray(items), known.of_users)

    def fold_in(self, histories: csr_array, own: Rows | None = None) -> Scores:
        return self.known.fold_in(self._known_part(histories), own)

    def write(self, formula: Formula) -> str | None:
        """Other programs score such items as the model alone does."""
        return self.known.write(formula)


def nothing_near(n_rows: int, n_columns: int) -> csr_array:
    """For items that no others speak for."""
    arrays = np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(n_rows + 1, np.int64)
    return csr_array(arrays, shape=(n_rows, n_columns))


def nearest(train: Interactions, cold: Rows, n_known: int) -> csr_array:
    """For each cold item the touched ones with the most similar tags; each row sums to 1, or to 0
    where there are none. (len(cold), n_known)"""
    if train.item_tags is None or not len(cold):
        return nothing_near(len(cold), n_known)
    Z, touched = tag_vectors(train), np.flatnonzero(train.item_degrees).astype(np.int32)
    by_tag = csr_array(Z[touched].T)
    rows = [nothing_near(0, n_known)]
    for start in range(0, len(cold), SOME_ROWS):
        alike = csr_array(Z[cold[start : start + SOME_ROWS]] @ by_tag)
        rows += [_speakers(alike, row, touched, n_known) for row in range(alike.shape[0])]
    return csr_array(vstack(rows, format="csr"))


def _speakers(alike: csr_array, row: int, touched: Rows, n_known: int) -> csr_array:
    entries = slice(alike.indptr[row], alike.indptr[row + 1])
    items, values = touched[alike.indices[entries]], alike.data[entries]
    # Of equally similar ones the first, whatever order a product has left them in.
    best = np.lexsort((items, -values))[:NEAREST]
    best = best[np.argsort(items[best])]
    shares = values[best] / max(float(values[best].sum()), 1e-12)
    where = (np.zeros(len(best), np.int64), items[best])
    return csr_array((shares.astype(np.float32), where), shape=(1, n_known))

"""Exact reasons: a score as the sum of a term from the user's own vector, the item's popularity,
and one term for each item of the user's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.catalogue import Catalogue
from ltocf.data.interactions import Id, Rows
from ltocf.recommend.lists import FittedModel
from ltocf.recommend.people import Person, joined_histories
from ltocf.recommend.tables import with_display


class Reasons(NamedTuple):
    """The terms of one score, which is their sum; the largest contribution comes first."""

    own: float  # from the user's own vector
    popularity: float  # the item's popularity, the same for all users
    items: Rows  # of the history
    contributions: NDArray[np.float64]

    @property
    def score(self) -> float:
        return self.own + self.popularity + float(self.contributions.sum())


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a user's score of an item is what it is; its terms sum to it: `own + popularity +
    because['contribution'].sum() == score`.

    `because` has a row for each item of their history, the largest contribution first: item,
    contribution, and the columns that the data set has to display.
    """

    user: Id | None  # None: a person known by their history alone
    item: Id
    score: float
    own: float  # from the user's own vector
    because: pl.DataFrame
    popularity: float = 0.0  # the item's part that is the same for everybody
    names: Sequence[str] = ()  # what the items of `because` are called
    in_common: tuple[str, ...] = ()  # tags that an item nobody has touched shares with the first

    def sentence(self, most: int = 3) -> str:
        """'because of A, B and C', or fewer if fewer have positive terms. For an item that nobody
        has touched: 'shares X and Y with A, which you have'.

        The item itself is never a reason, and an item with a score of 0 or less has none.
        """
        if self.score <= 0:
            return "not recommended: its score is not above 0"
        terms = zip(self.names, self.because["item"], self.because["contribution"], strict=True)
        named = [name for name, item, term in terms if term > 0 and item != self.item][:most]
        if not named and self.popularity > max(self.own, 0):
            return "popular with everybody; no item of the history adds to its score"
        if not named:
            return "because of the user's own vector; no item of the history adds to its score"
        if self.in_common:
            return f"shares {_listed(self.in_common)} with {named[0]}, which you have"
        return f"because of {_listed(named)}"


def reasons_of(fitted: FittedModel, person: Person, items: Rows) -> list[Reasons]:
    """The terms of each of these items' scores for a person; a ConfigError if the model's scores
    are not sums."""
    history = joined_histories(fitted.train, [person])
    terms = fitted.scorer.explain(items, history, person.row)
    found, everybodys = [], terms.popularity.tolist()
    for own, popularity, of_history in zip(
        terms.own.tolist(), everybodys, terms.of_history.T, strict=True
    ):
        order = np.argsort(-of_history, kind="stable")
        found.append(Reasons(own, popularity, history.indices[order], of_history[order]))
    return found


def explain(fitted: FittedModel, person: Person, user: Id | None, item: Id) -> Explanation:
    """The reasons of one item as a table, by the caller's ids."""
    ids, catalogue = fitted.seen.item_ids, fitted.dataset.catalogue
    rows = ids.rows([item], kind="item")
    (why,) = reasons_of(fitted, person, rows)
    terms = pl.Series("contribution", why.contributions)
    because = pl.DataFrame([ids.ids[why.items].rename("item"), terms])
    in_common: tuple[str, ...] = ()
    if len(why.items) and not fitted.seen.item_degrees[rows[0]]:
        in_common = tags_in_common(catalogue, int(rows[0]), int(why.items[0]))
    return Explanation(
        user,
        ids[rows][0],
        why.score,
        why.own,
        with_display(because, fitted.dataset, why.items),
        why.popularity,
        catalogue.names_of(why.items),
        in_common,
    )


def tags_in_common(catalogue: Catalogue, item: int, other: int) -> tuple[str, ...]:
    """The categories and tags that both items have, in the order of the catalogue's columns."""
    matrix, labels = catalogue.tags()
    ours, theirs = (set(matrix[[row]].indices.tolist()) for row in (item, other))
    return tuple(labels[tag][1] for tag in sorted(ours & theirs))


def _listed(names: Sequence[str]) -> str:
    """'A, B and C'."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)

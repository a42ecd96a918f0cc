"""Exact reasons: a score as the sum of a user's own part, what the item has with everybody, and one
term for each item they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ltocf.data.catalogue import Catalogue
from ltocf.data.interactions import Id
from ltocf.recommend.tables import naming_column


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a user's score of an item is what it is; its terms sum to it: `own + popularity +
    because['contribution'].sum() == score`.

    `because` has a row for each item of their history, the largest contribution first: item,
    contribution, and the columns that the data set has to display.
    """

    user: Id | None  # none: somebody known by their history alone
    item: Id
    score: float
    own: float  # from the user's own vector
    because: pl.DataFrame
    popularity: float = 0.0  # what the item has with everybody
    in_common: tuple[str, ...] = ()  # tags that an item nobody has touched shares with the first

    def sentence(self, most: int = 3) -> str:
        """'because of A, B and C'; with fewer reasons where fewer speak for the item. Of an item
        that nobody has touched: 'shares X and Y with A, which you have'.

        An item does not speak for itself, and one with a score of 0 or less has no reason.
        """
        if self.score <= 0:
            return "not recommended: more speaks against it than for it"
        others = self.because.filter((pl.col("contribution") > 0) & (pl.col("item") != self.item))
        names = others.head(most).select(
            pl.coalesce(_label(others), pl.col("item").cast(pl.String))
        )
        listed = names.to_series().to_list()
        if not listed and self.popularity > max(self.own, 0):
            return "popular with everybody: nothing in the history speaks for it"
        if not listed:
            return "because of the user's own part: nothing in the history speaks for it"
        if self.in_common:
            return f"shares {_listed(self.in_common)} with {listed[0]}, which you have"
        return f"because of {_listed(listed)}"


def _listed(names: Sequence[str]) -> str:
    """'A, B and C'."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def tags_in_common(catalogue: Catalogue, item: int, other: int) -> tuple[str, ...]:
    """What both rows have of categories and tags, in the order of the catalogue's columns."""
    matrix, labels = catalogue.tags()
    ours, theirs = (set(matrix[[row]].indices.tolist()) for row in (item, other))
    return tuple(labels[tag][1] for tag in sorted(ours & theirs))


def _label(because: pl.DataFrame) -> pl.Expr:
    """What an item is called."""
    column = naming_column(because.drop("item", "contribution"))
    return pl.col(column or "item").cast(pl.String)

"""What preparing a log did: what went in, what was left out and why, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ltocf.data.ingest.columns import LogColumns
from ltocf.data.pairs.cuts import SplitKind


@dataclass(frozen=True)
class PrepareReport:
    """The counts of one `prepare`; `lines` are for people, `to_dict` is for programs."""

    output: str
    columns: LogColumns
    notes: tuple[str, ...]  # what was found out about the log's form
    rows: int
    skipped: int  # rows that cannot be read
    skipped_reasons: tuple[str, ...]  # the first of them
    below_threshold: int
    returns: int  # rows that take something back
    passed_over: int  # rows of a kind that counts 0
    duplicates: int
    taken_back: int  # pairs of which nothing is left after returns, or that were hidden
    over_the_cap: int  # pairs of users who have more than asked for
    too_few: int  # pairs of users or items with fewer interactions than asked for
    unknown_to_train: int  # test pairs of users or items that train does not know
    split: SplitKind
    counts: dict[str, int]
    unnamed_items: int | None  # items that the table of names does not know
    seconds: float
    untouched_items: int = 0  # items of the table that nobody touched

    @property
    def density(self) -> float:
        pairs = self.counts["train"] + self.counts["valid"] + self.counts["test"]
        return pairs / (self.counts["users"] * self.counts["items"])

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "density": self.density}

    def lines(self) -> list[str]:
        """What did not happen is not mentioned."""
        counts = self.counts
        dropped = {
            "rows that cannot be read": self.skipped,
            "rows of a kind that counts 0": self.passed_over,
            "repeated pair, merged": self.duplicates,
            "taken back or hidden": self.taken_back,
            "beyond the latest that were asked for of a user (--max-user)": self.over_the_cap,
            "user or item with too few interactions": self.too_few,
            "test pairs whose user or item train does not know; 'ltocf refit' learns them too": (
                self.unknown_to_train
            ),
        }
        return [
            *self.notes,
            f"columns: {self.columns.describe()}",
            f"read: {self.rows:,} rows",
            *(f"left out: {count:,} ({why})" for why, count in dropped.items() if count),
            *(f"  {reason}" for reason in self.skipped_reasons),
            *self._not_liked(),
            f"kept: {counts['users']:,} users x {counts['items']:,} items, "
            f"density {self.density:.4%}",
            self._split(),
            *(
                [f"items of the catalogue that nobody touched yet: {self.untouched_items:,}"]
                if self.untouched_items
                else []
            ),
            *([f"without a name: {self.unnamed_items:,} items"] if self.unnamed_items else []),
            f"written to {self.output} in {self.seconds:.1f} s",
        ]

    def _not_liked(self) -> list[str]:
        if not self.below_threshold:
            return []
        return [
            f"not liked: {self.below_threshold:,} rows with a rating below the threshold or none; "
            f"{self.counts['unliked']:,} pairs are kept as seen, to be neither learned nor "
            "recommended"
        ]

    def _split(self) -> str:
        if self.split == "none":
            return f"split: none, all {self.counts['train']:,} train and nothing is left to test"
        subsets = ", ".join(
            f"{subset} {self.counts[subset]:,}" for subset in ("train", "valid", "test")
        )
        return f"split: {subsets} ({self.split})"

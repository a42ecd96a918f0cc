"""What preparing a log did: what went in, what was left out and why, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ltocf.data.ingest.columns import Columns


@dataclass(frozen=True)
class Report:
    """The counts of one `prepare`; `lines` are for people, `to_dict` is for programs."""

    output: str
    columns: Columns
    rows: int
    below_threshold: int
    duplicates: int
    too_few: int  # pairs of users or items with fewer interactions than asked for
    unknown_to_train: int  # later pairs of users or items that train does not know
    counts: dict[str, int]
    unnamed_items: int | None  # items that the table of names does not know
    seconds: float

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
            "rating below the threshold or missing": self.below_threshold,
            "repeated pair, merged": self.duplicates,
            "user or item with too few interactions": self.too_few,
            "user or item that train does not know": self.unknown_to_train,
        }
        unnamed = [f"without a name: {self.unnamed_items:,} items"] if self.unnamed_items else []
        return [
            f"columns: {self.columns.describe()}",
            f"read: {self.rows:,} rows",
            *(f"left out: {count:,} ({why})" for why, count in dropped.items() if count),
            f"kept: {counts['users']:,} users x {counts['items']:,} items, "
            f"density {self.density:.4%}",
            "split: "
            + ", ".join(f"{part} {counts[part]:,}" for part in ("train", "valid", "test")),
            *unnamed,
            f"written to {self.output} in {self.seconds:.1f} s",
        ]

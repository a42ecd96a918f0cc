"""The public data sets of the papers, by name: only facts, so importing it loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class PublishedSet:
    """A public data set: the md5 sums of train.txt and test.txt, and what they hold."""

    md5: tuple[str, str]
    users: int
    items: int
    train: int
    test: int


PUBLISHED = {
    "gowalla": PublishedSet(
        ("5eec1eb2edb8dd648377d348b8e136cf", "c04e2c4bcd2389f53ed8281816166149"),
        users=29_858,
        items=40_981,
        train=810_128,
        test=217_242,
    ),
    "yelp2018": PublishedSet(
        ("1b8b5d22a227e01d6de002c53d32b4c4", "0d57d7399862c32152b045ec5d2698e7"),
        users=31_668,
        items=38_048,
        train=1_237_259,
        test=324_147,
    ),
    "amazon-book": PublishedSet(
        ("c916ecac04ca72300a016228258b41ed", "30f8ccfea18d25007ba9fb9aba4e174d"),
        users=52_643,
        items=91_599,
        train=2_380_730,
        test=603_378,
    ),
}


class Portion(NamedTuple):
    """Some of the training pairs of a published set, beside all of its test pairs."""

    of: str
    share: float

    def __str__(self) -> str:
        return f"{self.share:.0%} of the training pairs".replace("%", " %")


def portion_of(counts: Mapping[str, int], dropped: int = 0) -> Portion | None:
    """The published set with these users and as many test pairs, including `dropped` ones, but with
    more training pairs. What is trained on such a portion must not pass for a figure on the whole:
    the pairs that are missing can be neither learned nor left out of a list."""
    for name, whole in PUBLISHED.items():
        same = counts["users"] == whole.users and counts["test"] + dropped == whole.test
        trained = counts["train"] + counts["valid"]
        if same and trained < whole.train:
            return Portion(name, trained / whole.train)
    return None

"""The public data sets of the papers, by name: facts alone, which need nothing to be loaded."""

from __future__ import annotations

from dataclasses import dataclass


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

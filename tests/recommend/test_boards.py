"""Boards by hand-worked counts."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.ids import IdMap
from ltocf.data.interactions import Interactions
from ltocf.data.splits import no_split
from ltocf.errors import ConfigError
from ltocf.recommend.boards import Touches, board, parse_window, trending
from ltocf.recommend.rules import Rules

NOW = datetime(2024, 6, 1)
DAY, WEEK = timedelta(days=1), timedelta(days=7)


def touches(counts: dict[int, tuple[int, int]]) -> Touches:
    """Of each item so many touches within the last week, and so many in the four weeks before."""
    items = [item for item, (recent, earlier) in counts.items() for _ in range(recent + earlier)]
    days = [d for recent, earlier in counts.values() for d in [1] * recent + [14] * earlier]
    return Touches(
        np.array(items, dtype=np.int32),
        np.array([NOW - day * DAY for day in days], dtype="datetime64[us]"),
    )


def test_small_numbers_do_not_trend():
    # Two touches after none against forty after forty, where four weeks had 160 of the rest.
    growth = trending(touches({0: (2, 0), 1: (40, 40), 2: (40, 160)}), 4, NOW, WEEK)
    assert growth[1] > 1 > growth[0] == growth[2] == growth[3] == 0


def test_the_lower_bound_of_a_ratio_by_hand():
    # n recent touches and none before: the chance is at least 0.05^(1 / n).
    growth = trending(touches({0: (10, 0), 1: (0, 100), 2: (90, 0)}), 3, NOW, WEEK)
    least = 0.05 ** (1 / 10)
    assert growth[0] == pytest.approx(least / (1 - least) * 100 / 100)
    assert growth[1] == 0


def test_when_all_grow_alike_nothing_trends():
    assert not trending(touches({item: (100, 100) for item in range(5)}), 5, NOW, WEEK).any()


@pytest.fixture
def shop() -> Dataset:
    days = {"a": [1, 40, 50, 60], "b": [1, 2], "c": [3], "d": []}
    pairs = [(user, item, day) for item, ago in days.items() for user, day in enumerate(ago)]
    ids = IdMap(list("abcd"))
    seconds = [int((NOW - day * DAY - datetime(1970, 1, 1)).total_seconds()) for *_, day in pairs]
    train = Interactions.build(
        np.array([user for user, *_ in pairs]),
        ids.find([item for _, item, _ in pairs]),
        IdMap.range(4),
        ids,
        np.array(seconds),
    )
    table = pl.DataFrame({"kind": ["x", "y", "x", "y"], "rank": [1, 2, 3, 4]})
    return Dataset("shop", no_split(train), table)


def test_popular_ever_and_within_a_window(shop):
    found = board(shop)
    assert found["item"].to_list() == ["a", "b", "c"]
    assert found["touches"].to_list() == [4, 2, 1]
    assert found.columns == ["rank", "item", "touches", "kind", "item_rank"]
    assert board(shop, window=30 * DAY)["item"].to_list() == ["b", "a", "c"]
    assert board(shop, k=1, rules=Rules.parse("kind=x"))["item"].to_list() == ["a"]


def test_new_is_by_the_first_touch_where_no_attribute_tells(shop):
    found = board(shop, "new", window=30 * DAY)
    assert found["item"].to_list() == ["b", "c"]
    assert found["arrived"][1] == NOW - 3 * DAY


def test_new_by_an_attribute_lists_what_nobody_touched(shop):
    added = pl.Series("added", [None, NOW - 9 * DAY, NOW - 8 * DAY, NOW - 2 * DAY])
    dataset = Dataset("shop", shop.split, shop.item_names.with_columns(added))
    assert board(dataset, "new")["item"].to_list() == ["d", "c", "b"]
    # The present is that of the latest touch or arrival; what is announced is not there yet.
    later = added.scatter(1, [NOW + DAY])
    dataset = Dataset("shop", shop.split, shop.item_names.with_columns(later))
    assert board(dataset, "new", now=NOW)["item"].to_list() == ["d", "c"]


def test_windows_are_written_short():
    assert parse_window("30d") == 30 * DAY
    assert parse_window(" 12h") == DAY / 2
    for wrong in ("", "d", "0d", "-1d", "3w", "month"):
        with pytest.raises(ConfigError, match="cannot read the window"):
            parse_window(wrong)


def test_a_window_needs_times(shop):
    train = shop.split.train
    bare = Interactions.build(train.users, train.items, train.user_ids, train.item_ids)
    with pytest.raises(ConfigError, match="needs the time"):
        board(Dataset("bare", no_split(bare)), window=DAY)

import numpy as np
import polars as pl
import pytest

from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import DataError


def test_ids_and_rows_are_each_others_inverse():
    ids = IdMap(["ada", "ben", 'naïve 🎷 \n"id"', ""])
    assert ids[np.array([3, 2])] == ["", 'naïve 🎷 \n"id"']
    assert ids.find(["ben", "nobody", ""]).tolist() == [1, -1, 3]


def test_an_integer_id_is_found_by_its_text_but_not_by_another_spelling():
    ids = IdMap([42, -1, 7])
    assert ids.find([42, "42", "042", " 42", "-1", "x", 7]).tolist() == [0, 0, -1, -1, 1, -1, 2]


def test_a_string_id_is_found_by_the_number_it_spells():
    assert IdMap(["42", "007"]).find([42, 7, "007"]).tolist() == [0, -1, 1]


def test_integers_beyond_64_signed_bits_are_kept_exactly():
    ids = IdMap(pl.Series([2**64 - 1, 5], dtype=pl.UInt64))
    assert ids.find([2**64 - 1, "18446744073709551615", 5]).tolist() == [0, 0, 1]


def test_an_unknown_id_is_named_and_a_long_one_is_shortened():
    with pytest.raises(DataError, match=r"unknown user 'zoe' and 1 more: not in the training"):
        IdMap(["ada"]).rows(["ada", "zoe", "yan"], kind="user")
    with pytest.raises(DataError, match=r"\.\.\.\(10000002 characters\)") as error:
        IdMap(["ada"]).rows(["x" * 10_000_000], kind="user")
    assert len(str(error.value)) < 300


def test_an_id_map_refuses_nulls_and_repeats():
    with pytest.raises(DataError, match="id 1 of 2 is null"):
        IdMap(pl.Series(["a", None]))
    with pytest.raises(DataError, match="id 'a' appears twice"):
        IdMap(["a", "b", "a"])


def test_an_extended_map_keeps_old_rows_and_adds_only_new_ids():
    assert IdMap([10, 20]).extended([20, 30, 10]).ids.to_list() == [10, 20, 30]


def test_pairs_are_sorted_and_merged_at_their_first_time():
    pairs = Interactions.build(
        np.array([1, 0, 1, 1]), np.array([2, 1, 0, 2]), 2, 3, np.array([9, 5, 7, 3])
    )
    assert pairs.users.tolist() == [0, 1, 1]
    assert pairs.items.tolist() == [1, 0, 2]
    assert pairs.timestamps is not None
    assert pairs.timestamps.tolist() == [5, 7, 3]
    assert pairs.indptr.tolist() == [0, 1, 3]
    assert pairs.items_of(1).tolist() == [0, 2]
    assert pairs.item_degrees.tolist() == [1, 1, 1]


def test_no_pairs_at_all_are_still_interactions():
    nothing = np.empty(0, dtype=np.int32)
    pairs = Interactions.build(nothing, nothing, 3, 2)
    assert len(pairs) == 0
    assert pairs.user_degrees.tolist() == [0, 0, 0]


def test_a_union_has_each_pair_once():
    left = Interactions.build(np.array([0, 1]), np.array([0, 1]), 2, 2)
    right = Interactions.build(np.array([1, 1]), np.array([0, 1]), 2, 2)
    both = left.union(right)
    assert both.users.tolist() == [0, 1, 1]
    assert both.items.tolist() == [0, 0, 1]


def test_the_fingerprint_changes_with_any_pair_and_any_count():
    prints = {
        Interactions.build(np.array([0, 1]), np.array(items), 2, n).fingerprint
        for items, n in (([0, 1], 2), ([0, 0], 2), ([0, 1], 3))
    }
    assert len(prints) == 3


def test_integer_ids_become_text_when_a_new_one_is_text() -> None:
    ids = IdMap([3, 1])
    assert ids.extended(["4", 5]).ids.to_list() == [3, 1, 4, 5]
    assert ids.extended(["1", "x"]).ids.to_list() == ["3", "1", "x"]
    assert IdMap(["a"]).extended([7]).ids.to_list() == ["a", "7"]

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltocf.data.interactions import IdMap, Interactions
from ltocf.data.splits import (
    Split,
    all_in_train,
    hold_out_validation,
    no_split,
    split_given,
    split_pairs,
)
from ltocf.errors import DataError


def block(n_users: int, n_items: int) -> Interactions:
    """Everybody has everything, at times 0, 1, 2, ..."""
    users = np.repeat(np.arange(n_users), n_items)
    items = np.tile(np.arange(n_items), n_users)
    return Interactions.build(users, items, n_users, n_items, np.arange(len(users)))


def pairs_of(part: Interactions) -> set[tuple[object, object]]:
    return set(zip(part.user_ids[part.users], part.item_ids[part.items], strict=True))


def test_a_ratio_split_gives_each_user_the_same_share():
    split = split_pairs(block(7, 10), ratio=0.8, seed=3)
    assert split.train.user_degrees.tolist() == [8] * 7
    assert split.test.user_degrees.tolist() == [2] * 7
    assert not pairs_of(split.train) & pairs_of(split.test)
    assert pairs_of(split.train) | pairs_of(split.test) == pairs_of(block(7, 10))


def test_a_ratio_split_depends_on_the_seed_and_on_nothing_else():
    first, again, other = (split_pairs(block(9, 9), ratio=0.7, seed=seed) for seed in (1, 1, 2))
    assert first.test.fingerprint == again.test.fingerprint != other.test.fingerprint


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60),
    st.floats(0.05, 0.95),
    st.integers(0, 99),
)
def test_a_ratio_split_never_leaves_a_user_or_an_item_without_train(pairs, ratio, seed):
    users, items = np.array(pairs).T
    everything = Interactions.build(users, items, 10, 10)
    try:
        split = split_pairs(everything, ratio=ratio, seed=seed)
    except DataError as error:
        assert "no interaction for test" in str(error)
        return
    assert (split.train.user_degrees > 0).tolist() == (everything.user_degrees > 0).tolist()
    assert (split.train.item_degrees > 0).tolist() == (everything.item_degrees > 0).tolist()
    assert len(split.train) + len(split.test) == len(everything)


def test_a_temporal_split_puts_all_of_one_time_on_one_side():
    times = np.array([1, 2, 2, 2, 3, 4])
    users, items = np.array([0, 0, 0, 1, 1, 0]), np.array([0, 1, 2, 0, 1, 3])
    split = split_pairs(Interactions.build(users, items, 2, 4, times), "temporal", 0.4)
    assert pairs_of(split.train) == {(0, 0), (0, 1), (0, 2), (1, 0)}
    assert pairs_of(split.test) == {(1, 1)}
    assert split.dropped == 1, "item 3 first appears after the cut"
    assert split.test.n_items == 3


def test_leave_last_out_takes_the_latest_item_of_everyone_who_has_two():
    users, items = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 1, 2, 0])
    times = np.array([5, 9, 1, 3, 2, 8])
    split = split_pairs(Interactions.build(users, items, 3, 3, times), "leave-last-out")
    assert pairs_of(split.test) == {(0, 1), (2, 0)}
    assert pairs_of(split.train) == {(0, 0), (0, 2), (1, 1), (2, 2)}


def test_splits_by_time_need_times():
    timeless = Interactions.build(np.array([0, 0]), np.array([0, 1]), 1, 2)
    with pytest.raises(DataError, match="needs the time of each interaction"):
        split_pairs(timeless, "temporal")
    with pytest.raises(DataError, match="needs the time of each interaction"):
        split_pairs(timeless, "leave-last-out")


def given_files(unknown: str = "error", test_user: str = "ada") -> Split:
    train = Interactions.build(
        np.array([0, 1]), np.array([0, 1]), IdMap(["ada", "ben"]), IdMap(["x", "y"])
    )
    test = Interactions.build(
        np.array([0, 0, 1]), np.array([0, 1, 1]), IdMap(["ben", test_user]), IdMap(["x", "z"])
    )
    return split_given(train, test, unknown=unknown)  # type: ignore[arg-type]


def test_given_files_meet_on_trains_ids_and_unknown_ones_are_dropped_on_request():
    split = given_files("drop")
    assert pairs_of(split.test) == {("ben", "x")}
    assert split.dropped == 2
    assert split.test.item_ids is split.train.item_ids


def test_an_unknown_test_item_or_user_is_an_error_unless_asked_otherwise():
    with pytest.raises(DataError, match=r"test item 'z' is not in train \(2 test interactions"):
        given_files()
    with pytest.raises(DataError, match="test user 'zoe' is not in train"):
        given_files(test_user="zoe")


def test_unknown_ids_can_be_kept_and_then_enlarge_the_maps():
    split = given_files("keep", test_user="zoe")
    assert pairs_of(split.test) == {("ben", "x"), ("ben", "z"), ("zoe", "z")}
    assert split.train.n_users == 3
    assert split.train.user_degrees.tolist() == [1, 1, 0]


def test_a_test_pair_that_train_has_is_dropped():
    split = split_given(block(2, 2), block(2, 3), unknown="keep")
    assert pairs_of(split.test) == {(0, 2), (1, 2)}
    assert split.dropped == 4


def test_validation_is_cut_from_train_and_never_takes_an_only_pair():
    split = hold_out_validation(split_pairs(block(60, 20), ratio=0.5, seed=0), 0.3, seed=1)
    assert split.valid.user_degrees.tolist() == [3] * 60
    assert split.train.user_degrees.tolist() == [7] * 60
    assert pairs_of(split.seen) == pairs_of(split.train) | pairs_of(split.valid)
    assert not pairs_of(split.valid) & pairs_of(split.train)
    lonely = split_pairs(block(6, 2), ratio=0.5, seed=0)
    assert len(hold_out_validation(lonely, 0.9, seed=0).valid) == 0


@pytest.mark.parametrize("each", [1, 2, 3, 4])
def test_where_users_have_few_pairs_some_of_them_give_one_to_validation(each):
    random = np.random.default_rng(0)
    n_users = 800
    users = np.repeat(np.arange(n_users), each)
    train = Interactions.build(users, random.integers(30, size=len(users)), n_users, 30)
    split = hold_out_validation(no_split(train), 0.1, seed=0)
    if each == 1:
        assert len(split.valid) == 0, "nobody can give one"
        return
    assert 0.07 < len(split.valid) / len(train) < 0.13
    assert split.valid.user_degrees.max() == 1
    assert split.train.user_degrees.min() >= 1
    again = hold_out_validation(no_split(train), 0.1, seed=0)
    other = hold_out_validation(no_split(train), 0.1, seed=1)
    assert split.valid.fingerprint == again.valid.fingerprint != other.valid.fingerprint


def test_a_ratio_split_works_for_users_with_two_pairs_each():
    users = np.repeat(np.arange(500), 2)
    pairs = Interactions.build(users, np.tile(np.arange(20), 50), 500, 20)
    split = split_pairs(pairs, ratio=0.8, seed=0)
    assert 0.15 < len(split.test) / len(pairs) < 0.25


def test_all_pairs_go_to_train_for_a_model_to_deploy():
    unliked = block(2, 2)
    cut = split_pairs(block(7, 10), ratio=0.8, seed=0)
    split = replace(hold_out_validation(cut, 0.2, seed=0), unliked=unliked)
    whole = all_in_train(split)
    assert pairs_of(whole.train) == pairs_of(block(7, 10))
    assert len(whole.test) == len(whole.valid) == 0
    assert (whole.kind, whole.unliked) == ("none", unliked)


def test_what_was_not_liked_is_known_but_never_in_train():
    liked = block(2, 3)
    unliked = Interactions.build(np.array([0]), np.array([3]), 2, 4)
    liked = replace(liked, item_ids=unliked.item_ids)
    split = no_split(liked, unliked)
    assert pairs_of(split.known) == pairs_of(liked) | {(0, 3)}
    assert pairs_of(split.seen) == pairs_of(liked)


def test_validation_can_be_each_users_latest_pairs():
    everything = block(3, 20)
    times = np.arange(60)
    times[20:40] = times[20:40][::-1]  # user 1 took item 0 last
    kept = everything.users < 2
    kept[45] = True  # user 2 has one pair, and keeps it
    train = replace(everything, timestamps=times).select(kept)
    split = hold_out_validation(no_split(train), 0.1, seed=0, cut="latest")
    assert pairs_of(split.valid) == {(0, 18), (0, 19), (1, 0), (1, 1)}


def test_the_latest_pairs_need_times():
    timeless = no_split(replace(block(6, 20), timestamps=None))
    with pytest.raises(DataError, match="needs the time of each interaction"):
        hold_out_validation(timeless, seed=0, cut="latest")


def test_validation_is_not_cut_twice():
    split = hold_out_validation(split_pairs(block(6, 20), ratio=0.5, seed=0), 0.3, seed=1)
    with pytest.raises(DataError, match="already has a validation set"):
        hold_out_validation(split, 0.1, seed=1)


def test_a_split_that_leaves_nothing_to_test_is_an_error():
    with pytest.raises(DataError, match="the split leaves no interaction for test"):
        split_pairs(block(3, 1), ratio=0.8, seed=0)


@pytest.mark.parametrize("ratio", [0, 1, 1.5, -0.1, float("nan")])
def test_a_ratio_outside_0_and_1_is_an_error(ratio):
    with pytest.raises(DataError, match="ratio must lie between 0 and 1"):
        split_pairs(block(3, 3), ratio=ratio, seed=0)


def test_cold_items_are_a_tenth_of_the_items_and_wholly_test() -> None:
    random = np.random.default_rng(0)
    users, items = np.nonzero(random.random((40, 30)) < 0.3)
    split = split_pairs(Interactions.build(users, items, 40, 30), "cold-items", seed=1)
    cold = np.flatnonzero(split.test.item_degrees)
    assert len(cold) == 3
    assert not split.train.item_degrees[cold].any()
    assert split.train.n_items == 30
    assert len(split.train) + len(split.test) + split.dropped == len(users)


def test_validation_by_items_holds_out_items_that_train_does_not_know() -> None:
    random = np.random.default_rng(0)
    users, items = np.nonzero(random.random((40, 30)) < 0.3)
    split = split_pairs(Interactions.build(users, items, 40, 30), "cold-items", seed=1)
    held = hold_out_validation(split, seed=0, cut="items")
    cold = np.flatnonzero(held.valid.item_degrees)
    assert len(cold) == 3
    assert not held.train.item_degrees[cold].any()
    assert (held.train.user_degrees[np.unique(held.valid.users)] > 0).all()
    assert len(held.seen) == len(split.train)

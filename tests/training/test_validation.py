"""Validation pairs are cut off as the test pairs were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.data.pairs.cuts import SplitKind
from ltocf.data.splits import Split
from ltocf.errors import ConfigError
from ltocf.training.protocol import everything, usual_cut, usual_share, with_validation

USERS, ITEMS = 20, 30


def split(kind: SplitKind, *, times: bool = True) -> Split:
    """Everybody has every item; user u took item i at time i if u is even, 100 - i if it is odd."""
    users, items = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    moments = np.where(users % 2, 100 - items, items)
    train = Interactions.build(users, items, USERS, ITEMS, moments if times else None)
    nothing = train.select(np.zeros(len(train), dtype=bool))
    return Split(train, nothing, nothing, kind=kind)


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("ratio", "random"),
        ("temporal", "temporal"),
        ("leave-last-out", "last"),
        ("given", "latest"),
        ("none", "latest"),
    ],
)
def test_validation_follows_the_kind_of_the_split(kind: SplitKind, cut: str) -> None:
    assert usual_cut(split(kind)) == cut
    assert usual_cut(split(kind, times=False)) == "random"


def test_the_last_pair_of_each_user_is_held_out_of_leave_last_out() -> None:
    cut = with_validation(split("leave-last-out"), TrainConfig(), 0, fewest=1)
    assert cut.valid.users.tolist() == list(range(USERS))
    assert cut.valid.items.tolist() == [0 if user % 2 else ITEMS - 1 for user in range(USERS)]


def test_the_latest_of_all_pairs_are_held_out_of_a_temporal_split() -> None:
    cut = with_validation(split("temporal"), TrainConfig(validation=0.1), 0)
    assert cut.valid.timestamps is not None and cut.train.timestamps is not None
    assert cut.valid.timestamps.min() > cut.train.timestamps.max()
    assert set(cut.valid.users) == set(range(1, USERS, 2))  # the odd ones came later
    assert (cut.train.user_degrees > 0).all() and (cut.train.item_degrees > 0).all()


@pytest.mark.parametrize(
    ("kind", "tested", "share"),
    [
        ("given", 150, 0.25),  # of 600, a quarter: each user's latest, as many as test has
        ("temporal", 120, 0.2),
        ("given", 6, 0.05),  # hardly any: at least a twentieth
        ("given", 400, 0.25),  # most: at most a quarter
        ("ratio", 150, 0.1),  # at random: a tenth
        ("given", 0, 0.1),
    ],
)
def test_of_the_latest_pairs_as_large_a_share_is_held_out_as_test_has(
    kind: SplitKind, tested: int, share: float
) -> None:
    whole = split(kind)
    drawn = np.arange(len(whole.train)) < tested
    cut = replace(whole, train=whole.train.select(~drawn), test=whole.train.select(drawn))
    assert usual_share(cut, usual_cut(cut)) == pytest.approx(share)
    by_default, asked = (
        with_validation(cut, TrainConfig(validation=given), 0) for given in (None, share)
    )
    assert by_default.valid.fingerprint == asked.valid.fingerprint


def test_a_validation_set_that_is_there_is_kept_and_given_back() -> None:
    cut = with_validation(split("ratio"), TrainConfig(), 0)
    assert with_validation(cut, TrainConfig(), 1) is cut
    whole = everything(cut)
    assert len(whole.train) == USERS * ITEMS and not len(whole.valid)


def test_a_small_log_is_left_whole() -> None:
    small = split("ratio")
    few = replace(small, train=small.train.select(small.train.users < 2))
    assert with_validation(few, TrainConfig(), 0) is few


def test_a_cut_by_time_needs_times() -> None:
    config = TrainConfig(validation_cut="last")
    with pytest.raises(ConfigError, match="validation_cut = 'last' needs a time of each"):
        with_validation(split("ratio", times=False), config, 0)

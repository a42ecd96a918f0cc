"""Which training pairs are held out to choose by: chosen as the test pairs were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltocf.config import TrainConfig, ValidationCut
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split, hold_out_validation
from ltocf.errors import ConfigError, DataError


def everything(split: Split) -> Split:
    """With nothing held out: all pairs but those of test are in train."""
    return replace(split, train=split.seen, valid=empty_like(split.valid))


FEWEST = 50  # fewer pairs choose by chance
USUAL_SHARE, LEAST_SHARE, LARGEST_SHARE = 0.1, 0.05, 0.25


def with_validation(split: Split, config: TrainConfig, seed: int, *, fewest: int = FEWEST) -> Split:
    """The split with the validation set that it has, or with one that is cut off its train as its
    test was. Train stays whole where that would be of fewer than `fewest` pairs."""
    if len(split.valid):
        return split
    cut = config.validation_cut or usual_cut(split)
    if cut in ("last", "latest", "temporal") and split.train.timestamps is None:
        raise ConfigError(
            f"validation_cut = {cut!r} needs a time of each interaction; use validation_cut=random"
        )
    share = config.validation or usual_share(split, cut)
    if cut in ("random", "latest"):
        try:
            held = hold_out_validation(split, share, seed=seed, latest=cut == "latest")
        except DataError:  # nobody can spare a pair
            return split
    else:
        choose = _last_of_each_user if cut == "last" else _latest_of_all
        drawn = _leave_some(split.train, choose(split.train, share))
        train = split.train
        held = replace(split, train=train.select(~drawn), valid=train.select(drawn))
    return held if len(held.valid) >= fewest else split


def usual_cut(split: Split) -> ValidationCut:
    """A random split is validated on random pairs, a temporal one on the latest of all, leave one
    out on the last of each user; others on each user's latest where times are known."""
    if split.train.timestamps is None or split.kind == "ratio":
        return "random"
    cuts: dict[str, ValidationCut] = {"temporal": "temporal", "leave-last-out": "last"}
    return cuts.get(split.kind, "latest")


def usual_share(split: Split, cut: ValidationCut) -> float:
    """Of the latest pairs as large a share as test has of all: the further ahead one looks, the
    more smoothing and the less recency are right. Of random ones a tenth, to lose little of train.
    """
    n_test = len(split.test)
    if cut not in ("latest", "temporal") or not n_test:
        return USUAL_SHARE
    return min(max(n_test / (len(split.seen) + n_test), LEAST_SHARE), LARGEST_SHARE)


def empty_like(part: Interactions) -> Interactions:
    return part.select(np.zeros(len(part), dtype=bool))


def _last_of_each_user(train: Interactions, fraction: float) -> NDArray[np.bool_]:
    assert train.timestamps is not None
    order = np.lexsort((train.timestamps, train.users))
    last = np.zeros(len(train), dtype=bool)
    last[order[train.indptr[1:][train.user_degrees > 1] - 1]] = True
    return last


def _latest_of_all(train: Interactions, fraction: float) -> NDArray[np.bool_]:
    assert train.timestamps is not None
    later: NDArray[np.bool_] = train.timestamps > np.quantile(train.timestamps, 1 - fraction)
    return later


def _leave_some(train: Interactions, held_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`held_out` without the pairs of users and items of whom train would keep nothing."""
    kept = train.select(~held_out)
    known = (kept.user_degrees[train.users] > 0) & (kept.item_degrees[train.items] > 0)
    return held_out & known

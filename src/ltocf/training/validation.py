"""Which training pairs are held out to choose by: chosen as the test pairs were."""

from __future__ import annotations

from dataclasses import replace

from ltocf.config import TrainConfig, ValidationCut
from ltocf.data.splits import Split, hold_out_validation
from ltocf.errors import ConfigError, DataError


def everything(split: Split) -> Split:
    """With nothing held out: all pairs but those of test are in train."""
    return replace(split, train=split.seen, valid=split.valid.empty())


FEWEST = 50  # with fewer pairs, chance would choose the epoch
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
    try:
        held = hold_out_validation(split, share, seed=seed, cut=cut)
    except DataError:  # no user has a pair to spare
        return split
    return held if len(held.valid) >= fewest else split


def usual_cut(split: Split) -> ValidationCut:
    """A random split, or one by users, is validated on random pairs, a temporal one on the latest
    of all, leave one out on the last of each user, cold items on cold items; others on each user's
    latest where times are known."""
    if split.kind == "cold-items":
        return "items"
    if split.train.timestamps is None or split.kind in ("ratio", "users"):
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

"""Which training pairs are held out for validation: they are chosen as the test pairs were."""

from __future__ import annotations

from dataclasses import replace

from ltocf.config import TrainConfig, ValidationCut
from ltocf.data.splits import Split, hold_out_validation
from ltocf.errors import ConfigError, DataError


def everything(split: Split) -> Split:
    """The split without validation pairs: all pairs but those of test are in train."""
    return replace(split, train=split.seen, valid=split.valid.empty())


FEWEST = 50  # with fewer pairs, chance would choose the epoch
USUAL_SHARE, LEAST_SHARE, LARGEST_SHARE = 0.1, 0.05, 0.25


def with_validation(split: Split, config: TrainConfig, seed: int, *, fewest: int = FEWEST) -> Split:
    """The split with validation pairs: those that it has, or some taken from train in the way that
    test was. If that would give fewer than `fewest` pairs, the split stays as it is."""
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
    """The validation cut that resembles the test cut. A random split, or one by users, is validated
    on random pairs, a temporal one on the latest of all, leave-last-out on the last of each user,
    and cold items on cold items; any other on each user's latest if times are known."""
    if split.kind == "cold-items":
        return "items"
    if split.train.timestamps is None or split.kind in ("ratio", "users"):
        return "random"
    cuts: dict[str, ValidationCut] = {"temporal": "temporal", "leave-last-out": "last"}
    return cuts.get(split.kind, "latest")


def usual_share(split: Split, cut: ValidationCut) -> float:
    """The share of pairs to hold out. Of the latest pairs, it is the share that test has of all
    pairs: the further ahead a test looks, the more smoothing and the less recency are right, and
    validation should look as far ahead. Of random pairs it is a tenth, to lose little of train."""
    n_test = len(split.test)
    if cut not in ("latest", "temporal") or not n_test:
        return USUAL_SHARE
    return min(max(n_test / (len(split.seen) + n_test), LEAST_SHARE), LARGEST_SHARE)

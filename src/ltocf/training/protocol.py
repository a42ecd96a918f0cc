"""The protocol: which pairs are held out for validation, chosen as the test pairs were; and what a
test asks of a model, lists for known users or for people whom it has never seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ltocf.config import TrainConfig, ValidationCut
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.splits import Split, hold_out_validation
from ltocf.errors import ConfigError, DataError
from ltocf.scorers.scorer import Scorer

FEWEST = 50  # with fewer pairs, chance would choose the epoch
USUAL_SHARE, LEAST_SHARE, LARGEST_SHARE = 0.1, 0.05, 0.25
TEST_KS = (10, 20, 50)  # the lengths of lists that a test reports
HISTORY = 0.8  # of a held-out person's items: the model sees these and must find the rest


def everything(split: Split) -> Split:
    """The split without validation pairs: all pairs but those of test are in train."""
    return replace(split, train=split.seen, valid=split.valid.empty())


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


class Question(NamedTuple):
    """The arguments of `evaluate`: what scores users, what they should get, what they have."""

    scorer: Callable[[Rows], Any]
    wanted: Interactions
    seen: Interactions


def question(scorer: Scorer, split: Split) -> Question:
    """The test of a split. In a split by users, the model gets most of each test person's history
    and must find the rest, as in the papers on Mult-VAE and EASE."""
    if split.kind != "users":
        return Question(scorer, split.test, split.seen)
    history, wanted = cut_histories(split.test)
    rows = histories_of(history)

    def folded_in(users: Rows) -> Any:
        return scorer.from_history(csr_array(rows[users]))

    return Question(folded_in, wanted, split.seen.union(history))


def list_lengths(split: Split) -> tuple[int, ...]:
    """The lengths of lists that are reported unless others are asked for."""
    return (*TEST_KS, 100) if split.kind == "users" else TEST_KS


def cut_histories(pairs: Interactions) -> tuple[Interactions, Interactions]:
    """A random 80 % of each person's items, always the same ones, and the rest, at least one."""
    lots = np.random.default_rng(0).random(len(pairs))
    order = np.lexsort((lots, pairs.users))
    place = np.empty(len(pairs), dtype=np.int64)
    place[order] = np.arange(len(pairs)) - pairs.indptr[pairs.users]
    known = place < np.floor(HISTORY * pairs.user_degrees[pairs.users])
    return pairs.select(known), pairs.select(~known)

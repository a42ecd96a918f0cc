"""What a test asks of a model: lists for known users, or for people whom it has never seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.splits import Split
from ltocf.scorers.scorer import Scorer

TEST_KS = (10, 20, 50)  # the lengths of lists that a test reports
HISTORY = 0.8  # of a held-out person's items: the model sees these and must find the rest


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

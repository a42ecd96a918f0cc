"""Scorers for every item, also for those that they were not fitted to or that nobody has touched.

Apart from what scores such items, which needs SciPy: most runs have none, and one list should not
wait for it to load.
"""

from __future__ import annotations

import numpy as np

from ltocf.data.interactions import Interactions, Rows
from ltocf.scorers.scorer import Scorer

NOTHING = np.empty(0, np.int32)


def complete(
    scorer: Scorer, train: Interactions, n_known: int | None = None, changed: Rows = NOTHING
) -> Scorer:
    """What scores every item of `train`, touched or not; `scorer` was fitted to the first `n_known`
    of them, by default to all. Of those some that nobody has touched may have `changed` since."""
    n_known = train.n_items if n_known is None else n_known
    if scorer.knows_untouched:
        if n_known == train.n_items and not len(changed):
            return scorer
        own = scorer.grown(train, n_known)
        if own is not None:
            return own
        new = np.arange(n_known, train.n_items)
        cold = np.union1d(changed, new).astype(np.int32)
    else:
        cold = np.flatnonzero(train.item_degrees == 0).astype(np.int32)
    if not len(cold):
        return scorer
    from ltocf.scorers.untouched import UntouchedScorer, nearest

    return UntouchedScorer(scorer, n_known, train.n_items, cold, nearest(train, cold, n_known))


def complete_for(wanted: Interactions, scorer: Scorer, train: Interactions) -> Scorer:
    """The same where some of what is wanted has not been touched and tags say what it is; otherwise
    the scorer as it is, since the others cost time and would be found by nobody."""
    untouched = train.item_degrees[wanted.items] == 0
    if not untouched.any() or train.item_tags is None:
        return scorer
    return complete(scorer, train)


def padded(scorer: Scorer, train: Interactions, n_known: int) -> Scorer:
    """The same for more items, of which it says nothing."""
    from ltocf.scorers.untouched import UntouchedScorer, nothing_near

    cold = np.arange(n_known, train.n_items, dtype=np.int32)
    return UntouchedScorer(scorer, n_known, train.n_items, cold, nothing_near(len(cold), n_known))

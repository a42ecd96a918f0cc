"""Cross-validation of a run's settings: how much its metrics depend on the split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.pairs.cuts import SplitKind
from ltocf.data.splits import Split, all_in_train
from ltocf.errors import ConfigError
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.scorers.complete import complete_for
from ltocf.training.fitting import fit

BY = ("time", "random")


def evaluate_folds(
    dataset: Dataset,
    config: RunConfig,
    folds: int,
    by: str = "time",
    ks: Sequence[int] = (20,),
    progress: Progress = silent,
) -> list[Metrics]:
    """The test metrics of each fold; the model is fitted from scratch to the fold's train pairs."""
    found = []
    for done, fold in enumerate(cut_folds(dataset, folds, by, seed=config.seed)):
        progress(f"fold {done + 1}", done, folds)
        model = fit(fold, config).model
        likeness = dataset.catalogue.likeness
        train, test = fold.split.train, fold.split.test
        scorer = complete_for(test, model.scorer(), train)
        found.append(evaluate(scorer, test, train, ks, likeness=likeness))
    progress("folds", folds, folds)
    return found


def cut_folds(
    dataset: Dataset, folds: int, by: str = "time", *, seed: int = 0
) -> Iterator[Dataset]:
    """The data set with all of its pairs split again, once for each fold.

    By time, the pairs are cut into `folds` + 1 periods with about equally many pairs: the first
    trains and the second tests, then the first two train and the third tests, and so on. At random,
    each fold of the pairs is tested once and the others train. Test pairs whose user or item is not
    in train are left out.
    """
    if by not in BY:
        raise ConfigError(f"folds by {by!r}: choose one of: {', '.join(BY)}")
    if folds < 2:
        raise ConfigError(f"folds = {folds!r}: there must be at least 2")
    pairs = all_in_train(dataset.split).train
    if by == "time" and pairs.timestamps is None:
        raise ConfigError(
            "folds by time need the time of each interaction; use random ones (--by random)"
        )
    for fold in range(folds):
        if by == "time":
            stretch = _stretches(pairs, folds + 1)
            train, test = pairs.select(stretch <= fold), pairs.select(stretch == fold + 1)
        else:
            drawn = np.random.default_rng(seed).integers(folds, size=len(pairs))
            train, test = pairs.select(drawn != fold), pairs.select(drawn == fold)
        known = (train.user_degrees[test.users] > 0) & (train.item_degrees[test.items] > 0)
        test = test.select(known)
        if not len(train) or not len(test):
            raise ConfigError(
                f"fold {fold + 1} of {folds} has nothing to train or to test on; use fewer folds"
            )
        kind: SplitKind = "temporal" if by == "time" else "ratio"
        split = Split(train, train.empty(), test, kind=kind, unliked=dataset.split.unliked)
        yield replace(dataset, split=split)


def _stretches(pairs: Interactions, n: int) -> NDArray[np.int64]:
    """Which of n periods each pair belongs to; pairs of equal times stay together. (n_pairs,)"""
    assert pairs.timestamps is not None
    ordered = np.sort(pairs.timestamps)
    ends = ordered[[len(ordered) * (cut + 1) // n - 1 for cut in range(n - 1)]]
    return np.searchsorted(ends, pairs.timestamps, side="left")

"""What it will cost to try a candidate of `auto`, measured on a part of the work."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import numpy as np
import torch

from ltocf.config import RunConfig
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.runs.candidates import EPOCHS_FOR_RECENCY, RECENCIES_TRAINED, given_to
from ltocf.runs.training import Trainer

LARGEST_EASE = 16_000  # users or items, whichever are fewer: its matrix is dense
SMALL = 100_000  # pairs: whatever is tried on so few takes seconds
# Of the users, to measure a cost by and what it grows by. The first may have to compile kernels or
# load a library; each is another part, since what is known of one is not computed again.
PARTS = 1 / 32, 1 / 16, 1 / 8
SOLVED = 2  # times: to be tried, and on all pairs
TIMES_TRIED, STEPS_TIMED = 3, 4  # the first counts for as little
EPOCHS_FOR_TIMES = 6  # that learning them takes as long as, in two rounds


def estimated_seconds(name: str, split: Split, config: RunConfig) -> float:
    """What `try_candidate` and a fit of what it finds will take here, measured on a part."""
    train = split.train
    if len(train) < SMALL:
        return 0.0
    if name == "ease":
        matrix = torch.eye(1000) * 2
        solve = partial(_seconds, lambda: torch.cholesky_inverse(torch.linalg.cholesky(matrix)))
        each = min(solve() for _ in range(TIMES_TRIED))
        return SOLVED * each * (min(train.n_users, train.n_items) / len(matrix)) ** 3
    if name == "ltocf":
        return _training_seconds(split, config)
    _, smaller, larger = (_solving_seconds(name, train, part) for part in PARTS)
    growth = max(larger - smaller, 0.0) / (PARTS[2] - PARTS[1])
    return SOLVED * (larger + growth * (1 - PARTS[2]))


def _solving_seconds(name: str, train: Interactions, part: float) -> float:
    """Of a closed form on so large a part of the users, with all items: much of what a filter
    costs depends on those alone."""
    active = np.flatnonzero(train.user_degrees)
    drawn = np.random.default_rng(0).choice(active, max(int(len(active) * part), 1), replace=False)
    some = train.select(np.isin(train.users, drawn))
    return _seconds(lambda: build_model(BipartiteGraph(some), name, {}).initialise_(0))


def _training_seconds(split: Split, config: RunConfig) -> float:
    """By a few steps on all pairs: a part of them has as many steps, and hardly fewer nodes."""
    model = build_model(BipartiteGraph(split.train), "ltocf", given_to("ltocf", config))
    setting_up = _seconds(lambda: model.initialise_(config.seed))
    epochs = config.train.epochs_for(split.train.pairs_per_user)
    trainer = Trainer(model, config.train, config.loss, config.seed, epochs)
    batches = model.batches(
        config.loss,
        batch_size=trainer.batch_size,
        draw_by=config.train.draw_by,
        seed=config.seed,
        epoch=1,
    )
    each = [_seconds(partial(trainer.step, batch, 0)) for batch in islice(batches, STEPS_TIMED)]
    judging = _seconds(lambda: trainer.validate(split.valid))
    total = 2 * epochs + EPOCHS_FOR_TIMES
    if split.train.timestamps is not None and "recency" not in given_to("ltocf", config):
        total += RECENCIES_TRAINED * EPOCHS_FOR_RECENCY
    return 2 * setting_up + total * (len(batches) * min(each) + judging)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fits(name: str, split: Split) -> bool:
    smaller = min(split.train.n_users, split.train.n_items)
    return name != "ease" or smaller <= LARGEST_EASE

"""What it will cost to try a candidate of `auto`, measured on a part of the work."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import numpy as np
import torch

from ltocf.config import RunConfig
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.runs.candidates import EPOCHS_FOR_RECENCY, RECENCIES_TRAINED, given_to
from ltocf.runs.training import Trainer

LARGEST_EASE = 16_000  # users or items, whichever are fewer: its matrix is dense
SMALL = 100_000  # pairs: whatever is tried on so few takes seconds
PART = 1 / 16  # of the users, to measure a cost by
STEPS_TIMED = 4  # the first may have to compile kernels
EPOCHS_FOR_TIMES = 6  # that learning them takes as long as, in two rounds


def estimated_seconds(name: str, split: Split, config: RunConfig) -> float:
    """What `try_candidate` and a fit of what it finds will take here, measured on a part."""
    train = split.train
    if len(train) < SMALL:
        return 0.0
    if name == "ease":
        small = torch.eye(1000) * 2
        each = _seconds(lambda: torch.cholesky_inverse(torch.linalg.cholesky(small)))
        larger = min(train.n_users, train.n_items) / len(small)
        return 2 * each * larger**3
    if name == "ltocf":
        return _training_seconds(split, config)
    active = np.flatnonzero(train.user_degrees)
    drawn = np.random.default_rng(0).choice(active, max(int(len(active) * PART), 1), replace=False)
    part = train.select(np.isin(train.users, drawn))
    scale = len(train) / max(len(part), 1)
    return 2 * scale * _seconds(lambda: build_model(BipartiteGraph(part), name, {}).initialise_(0))


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

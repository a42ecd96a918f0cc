"""A model in training split over processes by columns, and its state as that of one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ltocf.distributed import (
    columns_at_first,
    count,
    joined_rows,
    own_share,
    same_at_all_,
)
from ltocf.models.base import Model
from ltocf.training.records import TrainState


@contextmanager
def split_over_processes(model: Model) -> Iterator[None]:
    """Within the block, each process has its columns of the embeddings; after it, all of them."""
    if count() == 1:
        yield
        return
    check_processes(model)
    for value in model.state_dict().values():
        if value.ndim < 2:  # all must go on from the same times
            same_at_all_(value)
    # In place, so that optimisers that are made from now on hold this process's columns.
    (table,) = (parameter for parameter in model.parameters() if parameter.ndim == 2)
    model.columns.split_(table)
    yield
    model.columns.join_(table)


def check_processes(model: Model) -> None:
    """A ConfigError if the model cannot be trained by as many processes as there are."""
    model.columns.check(type(model).__name__)


# A model that can be split has one kind of table, and nothing else of it has two dimensions: its
# embeddings, their averages, the best so far, and Adam's moments of them.


def own_columns(state: TrainState) -> TrainState:
    """The state of one process, as one of several continues from it."""
    if count() == 1:
        return state
    tensors = {
        name: value[:, own_share(value.shape[1])].clone() if value.ndim == 2 else value
        for name, value in state.tensors.items()
    }
    return replace(state, tensors=tensors)


def whole_columns(state: TrainState) -> TrainState:
    """The state as one process would have it, at the first one; all must ask for it."""
    if count() == 1:
        return state
    tensors = {
        name: columns_at_first(value.cpu(), sum(joined_rows(value.shape[1])))
        if value.ndim == 2
        else value
        for name, value in state.tensors.items()
    }
    return replace(state, tensors=tensors)

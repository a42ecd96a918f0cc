"""Split a model in training over processes by columns, and convert its state to and from that of
one process."""

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
    model.columns.check(type(model).__name__)
    for value in model.state_dict().values():
        if value.ndim < 2:  # such as times: they are not split, and must be the same everywhere
            same_at_all_(value)
    # In place, so that optimisers made from now on hold this process's columns.
    (table,) = (parameter for parameter in model.parameters() if parameter.ndim == 2)
    model.columns.split_(table)
    yield
    model.columns.join_(table)


# In a model that can be split, every tensor with two dimensions is a table of embeddings: the
# current ones, their averages, the best so far, or Adam's moments. So `ndim == 2` means "split it".


def own_columns(state: TrainState) -> TrainState:
    """This process's share of a state that was saved by one process."""
    if count() == 1:
        return state
    tensors = {
        name: value[:, own_share(value.shape[1])].clone() if value.ndim == 2 else value
        for name, value in state.tensors.items()
    }
    return replace(state, tensors=tensors)


def whole_columns(state: TrainState) -> TrainState:
    """The state as a single process would have it, complete at the first process. All processes
    must call it, since they exchange their columns."""
    if count() == 1:
        return state
    tensors = {
        name: columns_at_first(value.cpu(), sum(joined_rows(value.shape[1])))
        if value.ndim == 2
        else value
        for name, value in state.tensors.items()
    }
    return replace(state, tensors=tensors)

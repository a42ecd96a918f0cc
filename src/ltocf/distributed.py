"""Several processes that train one model, each with its share of the columns of the embeddings.

Columns never mix in h(A) E, so each process propagates its own without a word to the others. What
they say to each other are sums over columns: scores of pairs, norms, the gradient of the times.
One process is a world of size 1, in which nothing is sent. Started by torchrun:

    torchrun --nproc-per-node 4 -m ltocf train gowalla --model ltocf -o runs/gowalla
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from ltocf.errors import ConfigError, RunError


@contextmanager
def processes() -> Iterator[None]:
    """Within the block, this process is one of those that torchrun started, or the only one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    _together(lambda: _meet(backend))
    try:
        yield
    finally:
        dist.destroy_process_group()


def _meet(backend: str) -> None:
    store, own_rank, world_size = next(iter(rendezvous("env://")))
    # torchrun keeps the store when it starts processes again: without a prefix of their own they
    # would find the addresses of the dead.
    life = dist.PrefixStore(f"life {_restarts()}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=life, rank=own_rank, world_size=world_size)


def count() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this is the process that prints and writes."""
    return rank() == 0


def restarted() -> bool:
    """Whether torchrun has started these processes again because one of them had died."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def device(kind: str) -> str:
    """The device of this process: of several on one machine, each has a GPU of its own."""
    local = os.environ.get("LOCAL_RANK", "0")
    return f"cuda:{local}" if kind == "cuda" and count() > 1 else kind


def wait() -> None:
    """Wait until all processes have come to this point."""
    if count() > 1:
        _together(dist.barrier)


def own_share(n: int, rank_: int | None = None) -> slice:
    """Which of n rows or columns belong to this process, or to `rank_`, in nearly equal shares."""
    of = rank() if rank_ is None else rank_
    return slice(n * of // count(), n * (of + 1) // count())


def same_at_all_(tensor: Tensor) -> None:
    """Overwrite the tensor with that of the first process, at every process."""
    if count() > 1:
        _together(partial(dist.broadcast, tensor, 0))


class Columns:
    """The columns of a model's embeddings: all of them, or, while it `is_split`, this process's.

    Sums over columns are then sums over processes; otherwise every method returns what it is given.
    `dim` is how many there are, None where a model's columns mix, so that one process has them all.
    `group` are the processes that share them, if not all.
    """

    def __init__(self, dim: int | None = None, group: Any = None) -> None:
        self.dim, self.is_split, self.group = dim, False, group

    def check(self, model: str) -> None:
        """A ConfigError if there are more processes than can share the columns of the model."""
        if count() == 1:
            return
        if self.dim is None:
            raise ConfigError(
                f"{model} cannot be trained by {count()} processes: only ltocf (with "
                "propagation='spectral'), lightgcn and mf have columns to split; start one process"
            )
        if self.dim < count():
            raise ConfigError(
                f"dim = {self.dim} cannot be split over {count()} processes: each needs a column "
                f"of its own; start at most {self.dim} or use a larger dim"
            )

    def split_(self, table: Tensor) -> None:
        """Keep this process's columns of the table, in place."""
        assert self.dim is not None
        # The parameter stays the same object, with other data: whoever holds it sees its columns.
        table.data = table.data[:, own_share(self.dim)].clone()
        self.is_split = count() > 1

    def join_(self, table: Tensor) -> None:
        """Undo `split_`, at every process."""
        table.data = self.joined(table.data)
        self.is_split = False

    def joined(self, table: Tensor) -> Tensor:
        """The whole table, at every process, from each one's columns. (n, dim)"""
        if not self.is_split:
            return table
        assert self.dim is not None
        out = table.new_empty(len(table), self.dim)
        for source in range(count()):
            columns = own_share(self.dim, source)
            part = table.contiguous()
            if source != rank():
                part = table.new_empty(len(table), columns.stop - columns.start)
            _together(partial(dist.broadcast, part, source))
            out[:, columns] = part
        return out

    def total(self, part: Tensor) -> Tensor:
        """The sum over processes, for what all go on to compute alike from it: its gradient, which
        all have whole, is that of every part."""
        if not self.is_split:
            return part
        summed: Tensor = _Total.apply(part, False)  # type: ignore[no-untyped-call]
        return summed

    def total_soon(self, part: Tensor) -> Callable[[], Tensor]:
        """The sum over processes, without a gradient and in place: asked for now, waited for when
        what is returned is called."""
        if not self.is_split:
            return lambda: part
        sent = list[Any]()
        _together(lambda: sent.append(dist.all_reduce(part, group=self.group, async_op=True)))

        def arrived() -> Tensor:
            _together(sent[0].wait)
            return part

        return arrived

    def total_for_own(self, part: Tensor) -> Tensor:
        """The sum over processes, for what each uses with its own columns: every process has a part
        of the gradient too, and those are summed."""
        if not self.is_split:
            return part
        summed: Tensor = _Total.apply(part, True)  # type: ignore[no-untyped-call]
        return summed

    def shared(self, whole: Tensor) -> Tensor:
        """What all have alike, used by each with its own columns: the gradients are summed."""
        if not self.is_split:
            return whole
        used: Tensor = _SharedInput.apply(whole)  # type: ignore[no-untyped-call]
        return used


def columns_at_first(table: Tensor, dim: int) -> Tensor:
    """The whole table at the first process, one share after the other; elsewhere its own part."""
    if count() == 1 or not is_first():
        if count() > 1:
            _together(partial(dist.send, table.contiguous(), 0))
        return table
    out = table.new_empty(len(table), dim)
    out[:, own_share(dim)] = table
    for source in range(1, count()):
        columns = own_share(dim, source)
        received = table.new_empty(len(table), columns.stop - columns.start)
        _together(partial(dist.recv, received, source))
        out[:, columns] = received
    return out


def joined_rows(part: Any) -> list[Any]:
    """What each process has, in the order of ranks, at every process; for small objects."""
    if count() == 1:
        return [part]
    parts: list[Any] = [None] * count()
    _together(lambda: dist.all_gather_object(parts, part))
    return parts


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, gradients_differ: bool) -> Tensor:
        ctx.gradients_differ = gradients_differ
        return _sum(part)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _sum(gradient) if ctx.gradients_differ else gradient, None


class _SharedInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor) -> Tensor:
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _sum(gradient)


def _sum(part: Tensor) -> Tensor:
    out = part.detach().clone()
    _together(lambda: dist.all_reduce(out))
    return out


def _together(collective: Callable[[], Any]) -> None:
    try:
        collective()
    except RuntimeError as error:  # gloo's and nccl's, when a peer is gone
        reason = str(error).splitlines()[0].rpartition("] ")[2][:120]  # what follows its place
        raise RunError(
            f"a process of this run has ended or cannot be reached ({reason}); finished epochs are "
            "kept: start it again (ltocf train --resume)"
        ) from None

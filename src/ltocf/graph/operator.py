"""A matrix defined by the products of it and its transpose with a table, as an operation that torch
can differentiate."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


def kernels_can_read(tensor: Tensor) -> bool:
    """Whether the compiled kernels can read this tensor: they only access the CPU's memory. On
    other devices torch's own operations do the same."""
    return tensor.device.type == "cpu"


class LinearOperator(Protocol):
    def product(self, E: Tensor) -> Tensor:
        """M E without gradients."""

    def transposed_product(self, E: Tensor) -> Tensor:
        """M^T E without gradients."""


def apply(operator: LinearOperator, E: Tensor) -> Tensor:
    """M E, differentiable with respect to E any number of times."""
    product: Tensor = _Product.apply(E, operator, False)  # type: ignore[no-untyped-call]
    return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, E: Tensor, operator: LinearOperator, transposed: bool) -> Tensor:
        ctx.operator, ctx.transposed = operator, transposed
        E = E.detach()
        return operator.transposed_product(E) if transposed else operator.product(E)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        by_E: Tensor = _Product.apply(gradient, ctx.operator, not ctx.transposed)  # type: ignore[no-untyped-call]
        return by_E, None, None

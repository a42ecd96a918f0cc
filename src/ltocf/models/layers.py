"""What the networks among the models share: seeded layers and dropout."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltocf.machine.memory import require_memory


def vectors_of_nodes(n_nodes: int, dim: int) -> nn.Parameter:
    """A vector for every user and item, zero for now. (n_nodes, dim)"""
    what = f"a vector of dim {dim:,} for each of {n_nodes:,} users and items"
    require_memory(4.0 * n_nodes * dim, what, "use a smaller dim")
    return nn.Parameter(torch.zeros(n_nodes, dim))


def glorot_(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of every linear layer inside as Glorot and Bengio do; zero its bias."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def dropout(x: Tensor, rate: float, noise: torch.Generator | None) -> Tensor:
    """x with a share of its entries zeroed and the others scaled up; x itself without noise.

    torch's own dropout draws from the global stream, which a resumed run could not repeat."""
    if noise is None or rate == 0:
        return x
    kept = torch.empty(x.shape).bernoulli_(1 - rate, generator=noise)
    return x * kept.to(x).div_(1 - rate)

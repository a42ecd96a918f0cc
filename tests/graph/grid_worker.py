"""One process of a grid: its part of h(A) E and of the gradients, from its own pairs alone."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from ltocf.distributed import processes, rank
from ltocf.filters.chebyshev import chebyshev_filter
from ltocf.graph.grid import GridGraph


def main(folder: Path, row_groups: int, column_groups: int) -> None:
    given = np.load(folder / "given.npz")
    n_users, n_items = given["sizes"].tolist()
    with processes():
        row, column = divmod(rank(), column_groups)
        pairs = given["users"], given["items"]
        needed = GridGraph.is_needed(*pairs, n_users, row_groups, row)
        users, items = (side[needed] for side in pairs)
        graph = GridGraph(users, items, n_users, n_items, row_groups)
        columns = np.array_split(np.arange(given["E"].shape[1]), column_groups)[column]
        E, G = (graph.own_rows(torch.from_numpy(given[name][:, columns])) for name in ("E", "G"))
        coefficients = torch.from_numpy(given["coefficients"]).requires_grad_()
        gather, sent = dist.all_gather_into_tensor, []

        def counted(out: torch.Tensor, part: torch.Tensor, group: object) -> None:
            sent.append((row_groups - 1) * part.numel() * part.element_size())
            gather(out, part, group=group)

        dist.all_gather_into_tensor = counted
        h = chebyshev_filter(graph, E.requires_grad_(), coefficients)
        in_forward = sum(sent)
        h.backward(G)
        np.savez(
            folder / f"{rank()}.npz",
            rows=np.arange(row, n_users + n_items, row_groups),
            columns=columns,
            h=h.detach().numpy(),
            by_E=E.grad.numpy(),
            by_coefficient=coefficients.grad.numpy(),
            sent=in_forward,
            model=graph.bytes_sent(len(columns), len(coefficients) - 1, 8),
            pairs=len(users),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

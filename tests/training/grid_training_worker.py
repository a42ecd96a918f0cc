"""One process of a grid: a whole training on its own rows, columns and pairs."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from ltocf.batches.own_pairs import OwnPairs
from ltocf.config import LOSSES, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.distributed import processes, rank
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.grid import GridGraph
from ltocf.models import build_model
from ltocf.training.over_grid import GridTraining


def main(folder: Path, row_groups: int, column_groups: int) -> None:
    given, asked = np.load(folder / "given.npz"), json.loads((folder / "asked.json").read_text())
    n_users, n_items = given["sizes"].tolist()
    users, items = given["users"], given["items"]
    with processes():
        row, column = divmod(rank(), column_groups)
        needed = GridGraph.is_needed(users, items, n_users, row_groups, row)
        graph = GridGraph(users[needed], items[needed], n_users, n_items, row_groups)
        mine = users % row_groups == row  # the only ones that it draws from
        pairs = OwnPairs(
            users[mine] // row_groups, items[mine], np.flatnonzero(mine),
            n_pairs=len(users), n_users=-(-n_users // row_groups), n_items=n_items,
        )  # fmt: skip
        one_pair = Interactions.build(np.zeros(1), np.zeros(1), user_ids=1, item_ids=1)
        response = build_model(BipartiteGraph(one_pair), "ltocf", asked["model"])
        columns = np.array_split(np.arange(given["weight"].shape[1]), column_groups)[column]
        weight = graph.own_rows(torch.from_numpy(given["weight"][:, columns]))
        training = GridTraining(
            graph, pairs, weight, response, LOSSES[asked["loss"].pop("name")](**asked["loss"]),
            TrainConfig(**asked["train"]), negatives=asked["negatives"], l2=asked["l2"],
            seed=asked["seed"], epochs=asked["epochs"],
        )  # fmt: skip
        sent, steps = count_bytes(row_groups, column_groups), []
        step = training.step

        def noted(rows: int, chunks: object, number: int) -> float:
            here = list(chunks)
            degree = len(response.coefficients()) - 1
            model = training.bytes_sent(sum(len(some[0]) for some in here), degree, 8)
            sent.clear()
            loss = step(rows, iter(here), number)
            steps.append((sum(sent), model))
            return loss

        training.step = noted
        losses = [training.run_epoch(epoch) for epoch in range(1, asked["epochs"] + 1)]
        np.savez(
            folder / f"{rank()}.npz",
            losses=losses,
            rows=np.arange(row, n_users + n_items, row_groups),
            columns=columns,
            weight=training.weight.detach().numpy(),
            times=response.times().detach().numpy(),
            steps=steps,
        )


def count_bytes(row_groups: int, column_groups: int) -> list[int]:
    """What this process sends from now on, by a ring; a few numbers at a time do not count."""
    sent: list[int] = []
    gather, scatter, reduce = (
        dist.all_gather_into_tensor,
        dist.all_to_all_single,
        dist.all_reduce,
    )

    def bytes_of(part: torch.Tensor) -> int:
        return part.numel() * part.element_size()

    def gathered(out: torch.Tensor, part: torch.Tensor, group: object) -> None:
        sent.append((row_groups - 1) * bytes_of(part))
        gather(out, part, group=group)

    def scattered(out: torch.Tensor, parts: torch.Tensor, group: object) -> None:
        sent.append((row_groups - 1) * bytes_of(parts) // row_groups)
        scatter(out, parts, group=group)

    def reduced(part: torch.Tensor, group: object = None, async_op: bool = False) -> object:
        if group is not None:
            sent.append(2 * (column_groups - 1) * bytes_of(part) // column_groups)
        return reduce(part, group=group, async_op=async_op)

    dist.all_gather_into_tensor, dist.all_to_all_single = gathered, scattered
    dist.all_reduce = reduced
    return sent


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""Propagation of LT-OCF, forward and backward, against torchdiffeq on the embeddings.

python -m benchmarks.propagation --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.data import read_data, synthetic_interactions
from benchmarks.measure import (
    machine,
    median_seconds,
    median_seconds_and_processor_seconds,
    peak_extra_bytes,
)
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.kernels.blocks import chebyshev_sum
from ltocf.graph.kernels.ordering import Adjacency
from ltocf.machine.hardware import last_level_cache_bytes
from ltocf.models.filter import FilterModel
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.ode.reference import propagate

Result = tuple[Tensor, ...]
CACHED_ROWS = 256  # of a block of columns: 32 KB, a first-level cache


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
    graph = BipartiteGraph(read_data(arguments.data).split.train)
    report: dict[str, Any] = {
        "benchmark": "propagation",
        "machine": machine(),
        "threads": arguments.threads,
        "dim": arguments.dim,
        "interactions": len(graph.interactions),
        **compare_with_torchdiffeq(graph, arguments.dim, arguments.rounds),
        **compare_products(graph, arguments.dim, 5 * arguments.rounds),
        **compare_solvers(graph, arguments.dim, 2 * arguments.rounds),
    }
    if arguments.millions:
        report["scaling"] = measure_scaling(arguments.millions, arguments.dim)
    print(json.dumps(report) if arguments.json else json.dumps(report, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="gowalla", help="a catalog name or a folder")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--millions", type=float, nargs="*", default=[1, 4, 16], help="sizes of synthetic graphs"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


# Times learn on the training loss, and the response has its natural size: what is compared with.
# To the accuracy of float32, so that both sides compute the same.
PUBLISHED = {"learn_times": "training", "scale": "natural", "tolerance": 1e-5}


def forward_and_backward(model: FilterModel, gradient: Tensor) -> Result:
    """The output and the gradients by every parameter that learns."""
    output = model.embeddings()
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return (output.detach(), *torch.autograd.grad(output, learning, gradient))


def build(model: type[FilterModel], graph: BipartiteGraph, **settings: object) -> FilterModel:
    built = model(graph, model.Config(**settings))
    built.initialise_(seed=0)
    return built


def coo_matrix(graph: BipartiteGraph) -> Tensor:
    indices = np.stack([np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.neighbours])
    values = (graph.degrees[indices] ** -0.5).prod(0).astype(np.float32)
    return torch.sparse_coo_tensor(
        torch.from_numpy(indices),
        torch.from_numpy(values),
        (graph.n_nodes,) * 2,
        is_coalesced=True,
        check_invariants=False,
    )


def torchdiffeq_over_coo(
    graph: BipartiteGraph, E: Tensor, gradient: Tensor, *, adjoint: bool
) -> Callable[[], Result]:
    """What the authors' code does: RK4 over torch.sparse, linear connection, K = 4 and T = 3."""
    A = coo_matrix(graph)
    model = LTOCF(graph, LTOCF.Config(dim=E.shape[1], learn_times="training"))

    def run() -> Result:
        start = nn.Parameter(E)
        output = propagate(
            lambda state: torch.sparse.mm(A, state), start, model.times(), model.state_weights,
            solver=model.solver, connection="linear", adjoint=adjoint,
        )  # fmt: skip
        return (
            output.detach(),
            *torch.autograd.grad(output, [start, model.times.inner], gradient),
        )

    return run


def compare_with_torchdiffeq(graph: BipartiteGraph, dim: int, rounds: int) -> dict[str, Any]:
    model, gradient = build(LTOCF, graph, **PUBLISHED, dim=dim), torch.randn(graph.n_nodes, dim)
    E = model.weight.detach()
    tasks: dict[str, Callable[[], Result]] = {
        "ltocf": lambda: forward_and_backward(model, gradient),
        "torchdiffeq": torchdiffeq_over_coo(graph, E, gradient, adjoint=False),
        "torchdiffeq_adjoint": torchdiffeq_over_coo(graph, E, gradient, adjoint=True),
    }
    ours, theirs = tasks["ltocf"](), tasks["torchdiffeq"]()
    names = ("output", "embedding_gradient", "time_gradient")
    # The gradients by parameter are in the order of the module's parameters: weight, then times.
    differences = {
        name: ((a - b).norm() / b.norm()).item()
        for name, a, b in zip(names, ours, theirs, strict=True)
    }
    del ours, theirs
    memory = {name: peak_extra_bytes(task) / 2**20 for name, task in tasks.items()}
    seconds = median_seconds(tasks, rounds)
    return {
        "ltocf_rk4_ms": 1e3 * seconds["ltocf"],
        "torchdiffeq_rk4_ms": 1e3 * seconds["torchdiffeq"],
        "torchdiffeq_adjoint_ms": 1e3 * seconds["torchdiffeq_adjoint"],
        "ratio": seconds["torchdiffeq"] / seconds["ltocf"],
        "ratio_to_adjoint": seconds["torchdiffeq_adjoint"] / seconds["ltocf"],
        "relative_difference": differences,
        "peak_extra_mib": memory,
        "memory_ratio": memory["ltocf"] / memory["torchdiffeq"],
    }


def compare_products(graph: BipartiteGraph, dim: int, rounds: int) -> dict[str, Any]:
    """One product, alone and as a step of the recurrence, and a step with every byte in cache."""
    E = torch.randn(graph.n_nodes, dim)
    A = graph.sparse_matrix(E.device, E.dtype)
    # The limit of the bytes moved: as many neighbours, all among the few rows that are in cache.
    near = np.arange(len(graph.neighbours)) % min(CACHED_ROWS, graph.n_nodes)
    limit = Adjacency.natural(graph.indptr, near.astype(np.int32))
    out = torch.empty_like(E).numpy()

    tasks: dict[str, Callable[[], object]] = {"ours": lambda: graph @ E, "torch_csr": lambda: A @ E}
    for degree in (1, 11):
        ones = [1.0] * (degree + 1)
        tasks[f"ours_{degree}"] = lambda ones=ones: graph.chebyshev_sum(E, ones)
        tasks[f"limit_{degree}"] = lambda ones=ones: chebyshev_sum(
            limit, E.numpy(), ones, None, out, torch.get_num_threads(), graph.lists.tables
        )
    seconds = median_seconds(tasks, rounds)
    step, least = (
        (seconds[f"{name}_11"] - seconds[f"{name}_1"]) / 10 for name in ("ours", "limit")
    )
    gathered = len(graph.neighbours) * dim * E.itemsize
    return {
        "product_ms": 1e3 * seconds["ours"],
        "torch_csr_product_ms": 1e3 * seconds["torch_csr"],
        "product_ratio": seconds["torch_csr"] / seconds["ours"],
        "step_ms": 1e3 * step,
        "step_ratio": seconds["torch_csr"] / step,
        "gathered_mib": gathered / 2**20,
        "gathered_gb_per_second": gathered / step / 1e9,
        "step_with_neighbours_in_cache_ms": 1e3 * least,
        "step_over_limit": step / least,
    }


def compare_solvers(graph: BipartiteGraph, dim: int, rounds: int) -> dict[str, Any]:
    gradient = torch.randn(graph.n_nodes, dim)
    models = {
        "lightgcn_3_layers": build(LightGCN, graph, dim=dim, layers=3),
        "rk4": build(LTOCF, graph, **PUBLISHED, dim=dim),
        "dormand_prince": build(LTOCF, graph, **PUBLISHED, dim=dim, solver="dormand_prince"),
        "adams_moulton": build(LTOCF, graph, **PUBLISHED, dim=dim, solver="adams_moulton"),
        "exact": build(LTOCF, graph, **PUBLISHED, dim=dim, solver="exact"),
    }
    tasks = {
        name: lambda model=model: forward_and_backward(model, gradient)
        for name, model in models.items()
    }
    seconds = median_seconds(tasks, rounds)
    return {
        "solver_ms": {name: 1e3 * value for name, value in seconds.items()},
        "degree": {name: len(model.coefficients()) - 1 for name, model in models.items()},
        "rk4_over_lightgcn": seconds["rk4"] / seconds["lightgcn_3_layers"],
        "dormand_prince_over_rk4": seconds["dormand_prince"] / seconds["rk4"],
        "adams_moulton_over_rk4": seconds["adams_moulton"] / seconds["rk4"],
    }


def measure_scaling(millions: list[float], dim: int) -> list[dict[str, Any]]:
    """Time and memory an interaction, on random graphs: the hardest for a cache."""
    rows = []
    for size in millions:
        start = time.perf_counter()
        graph = BipartiteGraph(synthetic_interactions(int(size * 1e6)))
        built = time.perf_counter() - start
        model, gradient = build(LTOCF, graph, **PUBLISHED, dim=dim), torch.randn(graph.n_nodes, dim)

        def run(model: FilterModel = model, gradient: Tensor = gradient) -> Result:
            return forward_and_backward(model, gradient)

        seconds, processor_seconds = median_seconds_and_processor_seconds(run, rounds=3)
        n = len(graph.interactions)
        table = graph.n_nodes * dim * 4
        rows.append(
            {
                "interactions": n,
                "build_seconds": built,
                "ms": 1e3 * seconds,
                "ns_per_interaction": 1e9 * seconds / n,
                "processor_ns_per_interaction": 1e9 * processor_seconds / n,
                "extra_bytes_per_interaction": peak_extra_bytes(run) / n,
                "embedding_table_mib": table / 2**20,
                "table_fits_last_level_cache": table <= last_level_cache_bytes(),
            }
        )
    return rows


if __name__ == "__main__":
    main()

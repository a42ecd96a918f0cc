"""Does LT-OCF gain from scores beside its own that do not learn?

python -m benchmarks.beside --data ../shared/data/ml-1m --json

It is trained on top of EASE's scores (as factors of rank 512), which leaves it to learn what EASE
gets wrong, and on top of the singular vectors that come after its own, which keeps the rank that it
has no columns for. The alternatives: LT-OCF alone, blended with EASE afterwards, and the sum of
three seeds. Figures are Recall@20 + NDCG@20 on validation; ratio is the best of the first two to
the blend, whose weight is the best on validation too.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import machine
from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import singular_vectors
from ltocf.models import build_model
from ltocf.models.blend import BlendScorer
from ltocf.models.embedding import DotScorer
from ltocf.models.ltocf import LTOCF, LTOCFConfig
from ltocf.models.scorer import Scorer
from ltocf.ranking.metrics import evaluate
from ltocf.runs.fitting import cut_for, fit
from ltocf.runs.records import merit
from ltocf.runs.settings import make_config

RANK = 512  # of what stands for EASE's scores
WEIGHTS = 0.2, 0.4, 0.6, 0.8, 1.2  # of EASE, by what its scores vary relative to LT-OCF's


class Beside(LTOCF):
    """LT-OCF with columns beside its own that add to every score and stay as they are."""

    def __init__(self, graph: BipartiteGraph, config: LTOCFConfig, fixed: Tensor) -> None:
        super().__init__(graph, config)
        self.fixed = fixed

    def _scored(self) -> Tensor:
        return torch.cat([self.embeddings(), self.fixed], 1)

    @torch.no_grad()
    def scorer(self) -> DotScorer:
        return dot_scorer(self.graph, self._scored())


def dot_scorer(graph: BipartiteGraph, table: Tensor) -> DotScorer:
    users, items = graph.split(table)
    return DotScorer(users, items.contiguous(), graph)


def further_singular_vectors(graph: BipartiteGraph, config: LTOCFConfig, n: int) -> Tensor:
    """The `n` after LT-OCF's own, in the size that those have at its start."""
    vectors = singular_vectors(graph, config.dim + n)
    table = torch.cat([vectors.users(graph), vectors.items]) * vectors.values.sqrt().float()
    own, further = table[:, : config.dim], table[:, config.dim :]
    return further * (config.initial_std / own.square().mean().sqrt())


def factors_of_ease(graph: BipartiteGraph, l2: float) -> Tensor:
    """Columns whose dot products are EASE's scores, as well as their number allows."""
    ease = build_model(graph, "ease", {"l2": l2})
    ease.initialise_(0)
    scores = ease.scorer()(np.arange(graph.n_users, dtype=np.int32)).float()
    left, values, right = torch.svd_lowrank(scores, RANK, niter=4)
    return torch.cat([left, right]) * values.sqrt()


def main() -> None:
    arguments = parse()
    config = make_config({}, {"learn_times": False, "refit": False, "end_time": arguments.end_time})
    cut = cut_for(config, load_dataset(arguments.data))
    graph, model = BipartiteGraph(cut.split.train), LTOCFConfig(**config.model_options)
    seeds = [trained(cut, config, seed) for seed in range(3)]
    found = {f"LT-OCF, seed {seed}": judged(cut, part) for seed, part in enumerate(seeds)}
    found["sum of three seeds"] = judged(cut, BlendScorer(seeds, [1.0] * len(seeds)))
    ease = factors_of_ease(graph, arguments.l2)
    found["EASE"] = judged(cut, dot_scorer(graph, ease))
    unit = size(seeds[0], graph) / size(dot_scorer(graph, ease), graph)
    for weight in WEIGHTS:
        columns = ease * (weight * unit) ** 0.5
        blend = BlendScorer([seeds[0], dot_scorer(graph, ease)], [1.0, weight])
        found[f"blended with {weight:g} EASE"] = judged(cut, blend)
        on_top = trained(cut, config, 0, Beside(graph, model, columns))
        found[f"on top of {weight:g} EASE"] = judged(cut, on_top)
    for n in arguments.further:
        further = Beside(graph, model, further_singular_vectors(graph, model, n))
        found[f"on top of {n} singular vectors"] = judged(cut, trained(cut, config, 0, further))
    best = {
        way: max(value for name, value in found.items() if name.startswith(way))
        for way in ("on top of", "blended with")
    }
    ratio = best["on top of"] / best["blended with"]
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio, "found": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def trained(cut: Dataset, config: RunConfig, seed: int, model: LTOCF | None = None) -> Scorer:
    return fit(cut, config.model_copy(update={"seed": seed}), model=model).model.scorer()


def judged(cut: Dataset, scorer: Scorer) -> float:
    return merit(evaluate(scorer, cut.split.valid, cut.split.train))


def size(scorer: Scorer, graph: BipartiteGraph) -> float:
    """By how much scores vary, on a thousand users."""
    return float(scorer(np.arange(min(graph.n_users, 1000), dtype=np.int32)).std())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--end-time", type=float, default=4.0, help="of LT-OCF; default: 4")
    parser.add_argument("--l2", type=float, default=500.0, help="of EASE; default: 500")
    parser.add_argument("--further", nargs="*", type=int, default=[192], help="singular vectors")
    parser.add_argument("--json", action="store_true", help="print the result as one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()

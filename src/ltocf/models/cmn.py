"""CMN: a pair's score looks up the users who have the item, by attention."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.network import PairConfig, PairModel
from ltocf.scorers.memory_network import MemoryScorer


class CMNConfig(PairConfig, frozen=True):
    hops: int = Field(2, ge=1)  # over the memory
    neighbours: int = Field(20, ge=1)  # at most so many of an item's users, drawn once


class CMN(PairModel):
    """Ebesu, Shen and Fang, "Collaborative Memory Network for Recommendation Systems", SIGIR 2018,
    eq. 1-7.

    z = m_u + e_i; over the users v who have item i, p = softmax(z . m_v) and o = sum p_v c_v; the
    next hop asks with z' = relu(W z + o + b); the score is v . relu(U [m_u * e_i; o] + b).
    Deviations: the neighbours are capped; a user is not a neighbour of their own pairs, or training
    would see what ranking cannot; `start_from` takes an MF (a GMF whose output weights are one),
    halved as the authors do; Adam instead of clipped RMSProp (the shared trainer). A step gathers
    batch x items x neighbours rows of two tables; ranking all of Gowalla takes users x items x
    (4 neighbours + dim) x dim multiplications."""

    Config = CMNConfig
    rows = {"weight": "nodes", "memory": "users"}  # noqa: RUF012
    config: CMNConfig
    near: Tensor

    def __init__(self, graph: BipartiteGraph, config: CMNConfig) -> None:
        super().__init__(graph, config)
        dim = config.dim
        self.memory = nn.Parameter(torch.zeros(graph.n_users, dim))  # c: what neighbours answer
        self.next_query = nn.Linear(dim, dim)
        self.combine = nn.Linear(2 * dim, dim)
        self.output = nn.Linear(dim, 1, bias=False)
        near = torch.from_numpy(sample_neighbours(graph, config.neighbours))
        self.register_buffer("near", near, persistent=False)

    def draw_(self, seed: int) -> None:
        super().draw_(seed)
        generator = torch.Generator().manual_seed(seed + 1)
        with torch.no_grad():
            self.memory.normal_(0, self.config.initial_std, generator=generator)

    def start_from_(self, weights: Mapping[str, Tensor]) -> None:
        super().start_from_(weights)
        with torch.no_grad():
            self.weight.mul_(0.5)

    def penalised(self) -> list[Tensor]:
        return [self.next_query.weight, self.combine.weight, self.output.weight]

    def score(self, users: Tensor, items: Tensor) -> Tensor:
        own, other = self.vectors(users, items)
        near = self.near[items]  # (batch, n, neighbours), -1 where there are fewer
        present = (near >= 0) & (near != users[:, None, None])
        asked = F.embedding(near.clamp(min=0), self.weight)  # a user's row is their own
        answers = F.embedding(near.clamp(min=0), self.memory)
        query = own + other
        found = attend(query[..., None, :], asked, answers, present[..., None, :])
        for _ in range(self.config.hops - 1):
            query = F.relu(self.next_query(query) + found[..., 0, :])
            found = attend(query[..., None, :], asked, answers, present[..., None, :])
        mixed = self.combine(torch.cat([own * other, found[..., 0, :]], -1))
        scores: Tensor = self.output(F.relu(mixed))[..., 0]
        return scores

    def scorer(self) -> MemoryScorer:
        arrays = self.arrays("combine")
        for name in ("weight", "bias"):
            arrays[f"next.{name}"] = getattr(self.next_query, name).detach().cpu().numpy()
        arrays["memory"] = self.memory.detach().cpu().numpy()
        arrays["output"] = self.output.weight.detach().cpu().numpy()[0]
        return MemoryScorer(arrays | {"near": self.near.cpu().numpy()}, hops=self.config.hops)


def attend(queries: Tensor, asked: Tensor, answers: Tensor, present: Tensor) -> Tensor:
    """Each query's mean of the answers, weighted by softmax of its products with those asked that
    are present; zero if none is. (..., q, dim), (..., n, dim) twice and (..., q, n)"""
    fit = (queries @ asked.mT).masked_fill(~present, torch.finfo(queries.dtype).min)
    return (fit.softmax(-1) * present) @ answers


def sample_neighbours(graph: BipartiteGraph, most: int) -> NDArray[np.int64]:
    """Up to `most` users of each item, the same draw for the same graph. (n_items, most)"""
    first = graph.indptr[graph.n_users]
    users = graph.neighbours[first:]
    owners = np.repeat(np.arange(graph.n_items), graph.degrees[graph.n_users :])
    order = np.lexsort((np.random.default_rng(0).random(len(users)), owners))
    place = np.arange(len(users)) - (graph.indptr[graph.n_users : -1] - first)[owners]
    near = np.full((graph.n_items, most), -1, np.int64)
    kept = place < most
    near[owners[kept], place[kept]] = users[order][kept]
    return near

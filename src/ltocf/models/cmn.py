"""CMN: a pair's score looks up the users who have the item, by attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from ltocf.data.interactions import Rows
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.network import PairConfig, PairModel, PairScorer
from ltocf.threads import share_out

LOWEST = -1e30  # the logit of who must not be asked
ITEMS_AT_ONCE = 256  # that a thread scores before it takes the next ones


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

    def scorer(self) -> CMNScorer:
        return CMNScorer(self)


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


class CMNScorer(PairScorer):
    """Scores of a tile of users, one item after another: what lies between stays in the cache."""

    @torch.no_grad()
    def __init__(self, model: CMN) -> None:
        super().__init__(model)
        of_product, of_found = model.combine.weight.chunk(2, 1)
        self.next_of_users = F.linear(self.users, model.next_query.weight)
        self.fixed = _Fixed(
            *(
                tensor.detach().cpu().numpy()
                for tensor in (
                    self.items,
                    self.users,
                    model.memory,
                    # U2 o = sum p_v (U2 c_v): project the answers once, not what each pair finds.
                    F.linear(model.memory, of_found),
                    model.next_query.weight,
                    F.linear(self.items, model.next_query.weight, model.next_query.bias),
                    model.next_query.bias,
                    of_product,
                    model.combine.bias,
                    model.output.weight[0],
                    model.near,
                )
            )
        )
        self.hops = model.config.hops

    @torch.no_grad()
    def __call__(self, users: Rows) -> Tensor:
        users, repeated = np.unique(users, return_inverse=True)
        rows = torch.from_numpy(users.astype(np.int64)).to(self.items.device)
        own = self.users[rows]
        # What users ask of all memories, and the users' share of the next question. (n, users)
        asked = (self.users @ own.T).contiguous().cpu().numpy()
        further = self.next_of_users[rows].T.contiguous().cpu().numpy()
        vectors = own.T.contiguous().cpu().numpy()
        place = np.full(len(self.users), -1, np.int64)
        place[users] = np.arange(len(users))
        out = np.empty((len(self.items), len(users)), vectors.dtype)

        def run(first: int, last: int) -> None:
            _score_items(first, last, self.hops, asked, further, vectors, place, *self.fixed, out)

        share_out(run, len(out), ITEMS_AT_ONCE)
        return torch.from_numpy(out.T[repeated]).to(self.items.device)


class _Fixed(NamedTuple):
    """What does not depend on the users who are asked for."""

    items: Any  # e (n_items, dim)
    asked: Any  # m, of users as neighbours (n_users, dim)
    answers: Any  # c (n_users, dim)
    projected: Any  # U2 c
    next_weight: Any  # W
    next_of_items: Any  # W e + b
    next_bias: Any
    of_product: Any  # U1
    combine_bias: Any
    output: Any
    near: Any


@njit(cache=True, nogil=True, fastmath=True)
def _score_items(
    first: Any, last: Any, hops: Any, asked_all: Any, further: Any, vectors: Any, place: Any,
    items: Any, asked: Any, answers: Any, projected: Any, next_weight: Any, next_of_items: Any,
    next_bias: Any, of_product: Any, combine_bias: Any, output: Any, near: Any, out: Any,
) -> None:  # fmt: skip
    """Every array is (something, users): the innermost loop runs over users."""
    dim, n_users = vectors.shape
    shares = np.empty((near.shape[1], n_users), vectors.dtype)
    query, next_query = np.empty_like(vectors), np.empty_like(vectors)
    sums = np.empty(n_users, vectors.dtype)
    for item in range(first, last):
        known = near[item][near[item] >= 0]
        around, found, final = asked[known], answers[known], projected[known]
        for v in range(len(known)):  # z . m_v = m_u . m_v + e_i . m_v
            shares[v] = asked_all[known[v]] + (items[item] * around[v]).sum()
        _softmax(shares, known, place)
        for hop in range(1, hops):
            for d in range(dim):
                if hop == 1:  # W (m_u + e_i) splits; later queries are no such sums
                    next_query[d] = further[d] + next_of_items[item, d]
                else:
                    next_query[d] = next_bias[d]
                    _add_rows(next_query[d], next_weight[d], query)
                _add_rows(next_query[d], found[:, d], shares)
            query[:] = np.maximum(next_query, 0)
            for v in range(len(known)):
                shares[v] = 0
                _add_rows(shares[v], around[v], query)
            _softmax(shares, known, place)
        out[item] = 0
        for e in range(dim):
            sums[:] = combine_bias[e]
            _add_rows(sums, of_product[e] * items[item], vectors)
            _add_rows(sums, final[:, e], shares)
            for u in range(n_users):
                out[item, u] += output[e] * max(sums[u], 0)


@njit(cache=True, nogil=True, fastmath=True)
def _add_rows(sums: Any, weights: Any, rows: Any) -> None:
    """sums += weights @ rows, four rows at a time: a sum is read and written once for four."""
    n, whole = len(weights), len(weights) // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        one, two, three, four = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for u in range(len(sums)):
            sums[u] += a * one[u] + b * two[u] + c * three[u] + d * four[u]
    for k in range(whole, n):
        weight, row = weights[k], rows[k]
        for u in range(len(sums)):
            sums[u] += weight * row[u]


@njit(cache=True, nogil=True, fastmath=True)
def _softmax(logits: Any, known: Any, place: Any) -> None:
    """Over the neighbours other than oneself, in place; zero where no other is left."""
    for v in range(len(known)):
        if place[known[v]] >= 0:
            logits[v, place[known[v]]] = LOWEST
    for u in range(logits.shape[1]):
        high = logits[0, u] if len(known) else 0.0
        for v in range(1, len(known)):
            high = max(high, logits[v, u])
        for v in range(len(known)):
            logits[v, u] = np.exp(logits[v, u] - high)
    for v in range(len(known)):
        if place[known[v]] >= 0:
            logits[v, place[known[v]]] = 0
    for u in range(logits.shape[1]):
        total = logits[0, u] if len(known) else 0.0
        for v in range(1, len(known)):
            total += logits[v, u]
        if total > 0:
            for v in range(len(known)):
                logits[v, u] /= total

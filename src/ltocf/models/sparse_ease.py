"""Sparse EASE: each item explained by those most alike, so that items x items stays sparse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.graph.kernels.sparse import shrunk_cosines
from ltocf.models.autoencoders import AutoencoderConfig, LinearAutoencoder
from ltocf.models.itemitem import ItemItemModel, interaction_matrix, scale

CHUNK = 256  # items solved by one task


class SparseEASEConfig(AutoencoderConfig, frozen=True):
    # Items that may explain another, the most alike of those that share a user with it.
    neighbours: int = Field(100, ge=1)


class SparseEASE(ItemItemModel):
    """EASE and its family (see `LinearAutoencoder`) with a sparse approximate inverse, as in Spisak
    et al., "Scalable Approximate NonSymmetric Autoencoder for Collaborative Filtering", RecSys
    2023.

    SANSA drops small entries of a sparse factor of G + diag(penalties). Deviation: here column i of
    the inverse is solved for exactly on the rows of i and its nearest neighbours by cosine, each
    item by itself, in parallel. Items without a common user never explain each other, as they do in
    EASE by way of others; where every two items have one, all neighbours give EASE. Memory: R, its
    transpose and 8 bytes for each neighbour; G is never formed, only its part among the neighbours.
    """

    Config = SparseEASEConfig
    config: SparseEASEConfig

    def weights(self) -> csr_array:
        train = self.graph.interactions
        form = LinearAutoencoder.of(train, self.config)
        users_of = csr_array(form.R.T)
        near = nearest(train, self.config.neighbours)
        values = np.zeros(near.nnz, dtype=np.float32)
        arrays = (
            users_of.indptr, users_of.indices, train.indptr, train.items,
            users_of.data, form.R.data, form.user_weights.astype(np.float32),
            near.indptr, near.indices, form.penalties.astype(np.float32),
            np.float32(form.self_weight), values,
        )  # fmt: skip

        def solve(start: int) -> None:
            _solve_items(start, min(start + CHUNK, train.n_items), *arrays)

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for done, _ in enumerate(pool.map(solve, range(0, train.n_items, CHUNK))):
                self.report("solving", min(done * CHUNK, train.n_items), train.n_items)
        # Column i of B explains item i; scores are r W, so W's rows are those who explain.
        B = csr_array(csr_array((values, near.indices, near.indptr), shape=near.shape).T)
        return scale(B, form.items, 1 / form.items)


def nearest(train: Interactions, k: int) -> csr_array:
    """The cosines of each item with the k other items of which they are greatest."""
    return shrunk_cosines(interaction_matrix(train), k, 0.0)


@numba.njit(nogil=True, cache=True)
def _solve_items(
    start: Any,
    stop: Any,
    item_indptr: Any,
    item_users: Any,
    user_indptr: Any,
    user_items: Any,
    item_values: Any,
    user_values: Any,
    user_weights: Any,
    near_indptr: Any,
    near: Any,
    penalties: Any,
    self_weight: Any,
    out: Any,
) -> None:
    """What each neighbour adds to item i: -z times the factor of i, with (G + diag(penalties)) z =
    e_i on i and its neighbours."""
    place = np.full(len(item_indptr) - 1, -1, np.int32)
    for item in range(start, stop):
        first, last = near_indptr[item], near_indptr[item + 1]
        n = last - first
        support = np.append(near[first:last], np.int32(item))
        for a in range(n + 1):
            place[support[a]] = a
        G = np.zeros((n + 1, n + 1), np.float32)
        for a in range(n + 1):
            for p in range(item_indptr[support[a]], item_indptr[support[a] + 1]):
                user = item_users[p]
                value = item_values[p] * user_weights[user]
                for q in range(user_indptr[user], user_indptr[user + 1]):
                    b = place[user_items[q]]
                    if b >= 0:
                        G[a, b] += value * user_values[q]
            G[a, a] += penalties[support[a]]
        for a in range(n + 1):
            place[support[a]] = -1
        # With item last, L^T z = e_last / L[last, last] is all that is left after factorising, and
        # z's last entry, here 1, is P_ii = 1 / L[last, last]^2.
        L = np.linalg.cholesky(G)
        z = np.zeros(n + 1, np.float32)
        z[n] = 1
        for a in range(n - 1, -1, -1):
            total = np.float32(0)
            for b in range(a + 1, n + 1):
                total += L[b, a] * z[b]
            z[a] = -total / L[a, a]
        factor = max(penalties[item] / (L[n, n] * L[n, n]), 1 - self_weight)
        out[first:last] = -z[:n] * factor

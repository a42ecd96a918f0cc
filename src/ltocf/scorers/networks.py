"""Networks when asked: those that score a pair of vectors, and Mult-VAE, which scores a history."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions, Rows
from ltocf.scorers.of_histories import HistoryScorer
from ltocf.scorers.scorer import NOBODY, Parts, Scorer, Scores, cosines

ITEM_BLOCK = 4096  # items scored at once for a user: their hidden layer stays in the cache


class PairScorer(Scorer):
    """`users` and `items` among the arrays hold a vector each; nothing follows from a history."""

    kind: str

    def __init__(self, arrays: dict[str, NDArray[Any]], **values: Any) -> None:
        self.arrays, self.values = arrays, values
        self.users, self.items = arrays["users"], arrays["items"]

    def from_history(self, histories: csr_array, own: Rows | None = None) -> Scores:
        if own is None or (own == NOBODY).any():
            return self.fold_in(histories)  # raises the ConfigError that explains why
        return self(own)

    @property
    def follows_history(self) -> bool:
        return False

    def similar_items(self, items: Rows) -> Scores:
        return cosines(self.items, items)

    def similar_users(self, users: Rows) -> Scores:
        return cosines(self.users, users)

    def parts(self) -> Parts:
        return Parts(self.kind, self.arrays, self.values)

    @classmethod
    def of_parts(cls, parts: Parts, train: Interactions) -> PairScorer:
        return cls(parts.arrays, **parts.values)


class NeuMFScorer(PairScorer):
    """[e_u; e_i; e_u * e_i] through ReLU layers to a linear score. Arrays: `first.weight`,
    `first.bias`, `hidden.0.weight` and so on, and `output`."""

    kind = "neumf"

    def __init__(self, arrays: dict[str, NDArray[Any]], *, hidden: int) -> None:
        super().__init__(arrays, hidden=hidden)
        # A layer on the three side by side is the sum of a layer on each.
        of_user, of_item, self.of_product = np.split(arrays["first.weight"], 3, axis=1)
        self.user_part = self.users @ of_user.T + arrays["first.bias"]
        self.item_part = self.items @ of_item.T

    def __call__(self, users: Rows) -> Scores:
        out = np.empty((len(users), len(self.items)), self.items.dtype)
        for row, user in enumerate(users):
            # (e_u * e_i) W = e_i (diag(e_u) W): one matrix product for all items of a user.
            product = (self.of_product * self.users[user]).T
            for start in range(0, len(self.items), ITEM_BLOCK):
                block = slice(start, start + ITEM_BLOCK)
                x = self.items[block] @ product
                x += self.item_part[block]
                x += self.user_part[user]
                np.maximum(x, 0, out=x)
                for layer in range(self.values["hidden"]):
                    x = x @ self.arrays[f"hidden.{layer}.weight"].T
                    x += self.arrays[f"hidden.{layer}.bias"]
                    np.maximum(x, 0, out=x)
                out[row, block] = x @ self.arrays["output"]
        return out


class AutoencoderScorer(HistoryScorer):
    """A history encoded to a latent mean and decoded to scores.

    Layers are arrays `NAME.weight` (out, in) and `NAME.bias`; `encode` has a row an item. Of
    the posterior, the first half of the rows is the mean."""

    kind = "autoencoder"

    def score_histories(self, histories: csr_array) -> Scores:
        counts = np.diff(histories.indptr)
        values = np.repeat(np.maximum(counts, 1) ** -0.5, counts).astype(np.float32)
        unit = csr_array((values, histories.indices, histories.indptr), shape=histories.shape)
        hidden = np.tanh(unit @ self.arrays["encode"] + self.arrays["encode_bias"])
        latent = self._layer("posterior", hidden)[:, : self.values["latent"]]
        return self._layer("output", np.tanh(self._layer("decode", latent)))

    def _layer(self, name: str, x: Scores) -> Scores:
        out: Scores = x @ self.arrays[f"{name}.weight"].T
        out += self.arrays[f"{name}.bias"]
        return out

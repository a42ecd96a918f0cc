"""Item kNN: the most alike items, by shrunk cosine."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from ltocf.models.history import TaggedConfig
from ltocf.models.itemitem import (
    ItemItemModel,
    interaction_matrix,
    keep_largest,
    product_rows,
    squares_of_columns,
    stack,
)


class ItemKNNConfig(TaggedConfig, frozen=True):
    neighbours: int = Field(200, ge=1)  # to keep of each item
    shrinkage: float = Field(10.0, ge=0)  # users added to the denominator: few in common count less


class ItemKNN(ItemItemModel):
    """`W[j, i] = common(j, i) / (sqrt(deg j * deg i) + shrinkage)`, the largest of each row."""

    Config = ItemKNNConfig
    config: ItemKNNConfig

    def weights(self) -> csr_array:
        train = self.graph.interactions
        R = interaction_matrix(train)
        roots = np.sqrt(squares_of_columns(R))
        blocks, start = [], 0
        for block in product_rows(csr_array(R.T), R):
            rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr)) + start
            block.data /= roots[rows] * roots[block.indices] + self.config.shrinkage
            blocks.append(keep_largest(block, self.config.neighbours))
            start += block.shape[0]
        return stack(iter(blocks))

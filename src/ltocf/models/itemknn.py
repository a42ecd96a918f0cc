"""Item kNN: the most alike items, by shrunk cosine."""

from __future__ import annotations

from pydantic import Field
from scipy.sparse import csr_array

from ltocf.graph.kernels.sparse import shrunk_cosines
from ltocf.models.history import TaggedConfig
from ltocf.models.itemitem import ItemItemModel, interaction_matrix


class ItemKNNConfig(TaggedConfig, frozen=True):
    neighbours: int = Field(200, ge=1)  # to keep of each item
    shrinkage: float = Field(10.0, ge=0)  # users added to the denominator: few in common count less


class ItemKNN(ItemItemModel):
    """`W[j, i] = common(j, i) / (sqrt(deg j * deg i) + shrinkage)`, the largest of each row."""

    Config = ItemKNNConfig
    config: ItemKNNConfig

    def weights(self) -> csr_array:
        R = interaction_matrix(self.graph.interactions)
        return shrunk_cosines(R, self.config.neighbours, self.config.shrinkage)

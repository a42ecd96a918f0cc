"""What GF-CF, BSPM and ChebyCF have in common: a filter of the item graph plus a low rank."""

from __future__ import annotations

from ltocf.models.history import HistoryModel
from ltocf.scorers.item_filter import ItemFilterScorer


class ItemFilterModel(HistoryModel):
    """What is solved is what `ItemFilterScorer` takes: coefficients, before, after, left, right."""

    def scorer(self) -> ItemFilterScorer:
        train, graph = self.people, self.graph.lists
        return ItemFilterScorer(
            self.arrays(), self.history_weights, train, graph, tag_weight=self.tag_weight
        )

"""Scores -> lists under rules: block, boost, rank a pool, reorder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.catalogue import Catalogue
from ltocf.data.interactions import Interactions, Rows
from ltocf.errors import ConfigError
from ltocf.ranking.top_k import Ranked, rank, tile_bytes
from ltocf.recommend.rules.diversity import unit_rows
from ltocf.recommend.rules.impressions import scale_
from ltocf.recommend.rules.reorder import Likeness, pool_size, reordered
from ltocf.recommend.rules.rules import ItemRules, Rules


def top_k_by_rules(
    scorer: Callable[[Rows], Any],
    people: Rows,
    k: int,
    rules: ItemRules,
    *,
    n_items: int,
    seen: Interactions | None = None,
    likeness: Likeness | None = None,
) -> Ranked:
    """Each one's k best items that they have not `seen`, as the rules allow and order them.

    `scorer` gives fresh scores of rows of people, which are overwritten. (rows, n_items)
    """
    tile = tile_bytes(n_items) // (4 * n_items)
    lists = [Ranked(np.empty((0, k), np.int32), np.empty((0, k), np.float32))]
    for start in range(0, len(people), tile):
        rows = people[start : start + tile]
        scores = scorer(rows)
        dense: NDArray[np.float32] = np.asarray(scores)
        _apply_(dense, rules)
        pool = rank(scores, pool_size(rules, k, n_items), rows, seen)
        if rules.rules.reorder:
            pool = reordered(pool, k, rules, likeness, dense.__getitem__)
        lists.append(pool)
    items, values = zip(*lists, strict=True)
    return Ranked(np.concatenate(items), np.concatenate(values))


def _apply_(scores: NDArray[np.float32], rules: ItemRules) -> None:
    """Boost and block, in place. A catalogue may know items that the model does not."""
    n_items = scores.shape[1]
    if rules.factors is not None:
        scale_(scores, rules.factors[:n_items])
    if rules.penalty is not None:
        scores += rules.penalty[:n_items]  # ten times faster than writing through a mask


def item_likeness(
    rules: Rules, catalogue: Catalogue, vectors: Callable[[], Likeness]
) -> Likeness | None:
    """What makes two items alike under these rules: rows whose inner products say it."""
    if not rules.diversity:
        return None
    if rules.by == "vectors":
        return vectors()
    if not catalogue.attributes.nnz:
        raise ConfigError(
            "diversity by attributes needs categories or tags of the items (--items FILE); "
            "or ask for it by vectors"
        )
    return catalogue.attributes


def vectors_of(items: Any | None, train: Interactions) -> Likeness:
    """A model's vectors of items by their lengths; of a model without, who has them."""
    if items is not None:
        return unit_rows(np.asarray(items))
    lengths = np.sqrt(np.maximum(train.item_degrees, 1))
    values = (1 / lengths[train.items]).astype(np.float32)
    shape = (train.n_items, train.n_users)
    return csr_array((values, (train.items, train.users)), shape=shape)

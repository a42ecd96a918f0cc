"""Tags of items as additional users who have the items with that tag, so that each tag is a node of
the graph."""

from __future__ import annotations

import numpy as np

from ltocf.data.interactions import IdMap, Interactions
from ltocf.errors import ConfigError


def tags_as_users(train: Interactions, weight: float) -> Interactions:
    """The pairs, and after the users one more for each tag, who has those of the tag's items that
    somebody has touched.

    Such a pair counts `weight` times as much as that of a user who touched an item once. Items that
    nobody has touched are left out: they would dilute the tags of the others, and adding one would
    change everybody's scores. With weight 0 these are the pairs alone.
    """
    if not weight:
        return train
    if train.item_tags is None:
        raise ConfigError(
            f"tag_weight = {weight!r} needs attributes of the items, which these data do not have; "
            "give a table of items (--items) with categories or tags, or leave tag_weight out"
        )
    from scipy.sparse import csr_array

    touched = (train.item_degrees > 0).astype(np.float32)
    of_touched = csr_array(train.item_tags.multiply(touched[:, None]))
    of_touched.eliminate_zeros()
    by_tag = csr_array(of_touched.T)
    tags = np.repeat(np.arange(by_tag.shape[0]), np.diff(by_tag.indptr)) + train.n_users
    weights = None
    if train.weights is not None or weight != 1:
        # A pair of weight w counts log2(1 + w). With this inverse the pair counts `weight`.
        ours = np.ones(len(train), np.float32) if train.weights is None else train.weights
        theirs = np.full(len(tags), 2.0**weight - 1, np.float32)
        weights = np.concatenate([ours, theirs])
    return Interactions.build(
        np.concatenate([train.users, tags]),
        np.concatenate([train.items, by_tag.indices]),
        IdMap.range(train.n_users + by_tag.shape[0]),
        train.item_ids,
        weights=weights,
    )

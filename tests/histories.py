"""Histories as matrices, worked out plainly: what the library's own are held against."""

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array


def history_matrix(histories: Iterable[Iterable[int]], n_items: int) -> csr_array:
    """1 / (1 + how many came later) for each item; of one that comes twice the first time counts.
    (len(histories), n_items)"""
    histories = [list(history) for history in histories]
    dense = np.zeros((len(histories), n_items), np.float32)
    for row, history in enumerate(histories):
        distinct = list(dict.fromkeys(int(item) for item in history))
        for later, item in enumerate(reversed(distinct)):
            dense[row, item] = 1 / (1 + later)
    return csr_array(dense)

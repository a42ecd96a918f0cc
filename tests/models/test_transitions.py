"""Directed, decayed co-occurrence against its formula, written pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.transitions import Transitions

LINES = [[0, 1, 2, 3, 4], [2, 1, 5], [4, 0], [5, 3, 1, 0, 2, 4], [6]]
NO_POWERS = {"from_power": 0.0, "to_power": 0.0}
SETTINGS = {"window": 3, "decay": 2.0, "backward": 0.25, "from_power": 0.4, "to_power": 0.2}


def interactions(lines: list[list[int]], times: list[list[int]] | None = None) -> Interactions:
    users = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
    when = times or [list(range(len(line))) for line in lines]
    return Interactions.build(
        users, np.concatenate(lines), len(lines), 8, np.concatenate(when).astype(np.int64)
    )


def fitted(train: Interactions, **settings: float) -> Transitions:
    model = Transitions(BipartiteGraph(train), Transitions.Config(**settings))
    model.initialise_(seed=0)
    return model


def by_definition(lines: list[list[int]]) -> NDArray[np.float64]:
    C = np.zeros((8, 8))
    for line in lines:
        for first, i in enumerate(line):
            for gap, j in enumerate(line[first + 1 : first + 4], start=1):
                C[i, j] += np.exp(-(gap - 1) / 2)
                C[j, i] += 0.25 * np.exp(-(gap - 1) / 2)
    rows, columns = C.sum(1, keepdims=True), C.sum(0, keepdims=True)
    return C / np.where(rows > 0, rows, 1) ** 0.4 / np.where(columns > 0, columns, 1) ** 0.2


def test_transitions_are_the_decayed_directed_counts() -> None:
    W = fitted(interactions(LINES), **SETTINGS).weights().toarray()
    np.testing.assert_allclose(W, by_definition(LINES), rtol=1e-5)


def test_the_latest_items_of_a_history_count_most() -> None:
    scorer = fitted(interactions(LINES), **SETTINGS, memory=1.5).scorer()
    ages = np.arange(5)[::-1]
    expected = np.exp(-ages / 1.5) @ by_definition(LINES)[LINES[0]]
    expected *= 5 / np.exp(-ages / 1.5).sum()  # weights of a history have a mean of 1
    np.testing.assert_allclose(scorer(np.array([0], np.int32))[0], expected, rtol=1e-5)


def test_a_newcomer_is_scored_as_the_known_user_with_their_history() -> None:
    scorer = fitted(interactions(LINES), **SETTINGS).scorer()
    history = np.zeros((1, 8), np.float32)
    history[0, LINES[3]] = 1 / np.arange(6, 0, -1)
    known = scorer(np.array([3], np.int32))
    np.testing.assert_allclose(scorer.from_history(csr_array(history)), known, rtol=1e-6)


def test_items_of_one_moment_count_half_each_way() -> None:
    W = fitted(interactions([[0, 1]], [[7, 7]]), **SETTINGS | NO_POWERS).weights()
    assert W[0, 1] == W[1, 0] == pytest.approx((1 + 0.25) / 2)


def test_only_the_strongest_followers_are_kept() -> None:
    W = fitted(interactions(LINES), **SETTINGS, neighbours=2).weights().toarray()
    whole = by_definition(LINES)
    for row, full in zip(W, whole, strict=True):
        assert np.count_nonzero(row) <= 2
        np.testing.assert_allclose(np.sort(row)[-2:], np.sort(full)[-2:], rtol=1e-5)


def test_without_times_weights_between_items_are_symmetric() -> None:
    train = Interactions.build(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), 2, 8)
    W = fitted(train, **SETTINGS | NO_POWERS).weights().toarray()
    np.testing.assert_allclose(W, W.T, rtol=1e-6)
    assert W[0, 1] > 0 and W[0, 2] == 0

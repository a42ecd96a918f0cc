"""Weights of a blend, on scores whose right mixture is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.data.interactions import Interactions, Rows
from ltocf.ranking.metrics import evaluate
from ltocf.scorers.blend import BlendScorer
from ltocf.scorers.scorer import Scorer
from ltocf.search import mixing
from ltocf.search.mixing import Mix, fit_mix, opinion_of, pooled

Table = NDArray[np.float32]


class _Fixed(Scorer):
    """Scores that are given."""

    def __init__(self, scores: Table) -> None:
        self.scores = scores

    def __call__(self, users: Rows):  # type: ignore[no-untyped-def]
        return self.scores[users]

    def from_history(self, histories: csr_array, own: Rows | None = None):  # type: ignore[no-untyped-def]
        raise AssertionError("nobody is new here")

    similar_items = similar_users = __call__


def _randoms(n: int, seed: int = 0) -> list[Table]:
    random = np.random.default_rng(seed)
    return [random.standard_normal((200, 300), np.float32) for _ in range(n)]


def _best_of(truth: Table) -> Interactions:
    items = np.argsort(-truth, axis=1)[:, :10].ravel()
    return Interactions.build(np.repeat(np.arange(200), 10), items, 200, 300)


def _nothing(pairs: Interactions) -> Interactions:
    return pairs.select(np.zeros(len(pairs), dtype=bool))


def _mixed(scorers: list[_Fixed], wanted: Interactions, most: int = 3) -> Mix:
    users = np.flatnonzero(wanted.user_degrees).astype(np.int32)
    opinions = [opinion_of(scorer, users, _nothing(wanted)) for scorer in scorers]
    return fit_mix(pooled(opinions, users, wanted), most)


def test_the_ndcg_that_weights_are_fitted_by_is_that_of_the_metrics() -> None:
    truth, noise = _randoms(2)
    wanted = _best_of(truth)
    users = np.arange(200, dtype=np.int32)
    tables = (truth, (truth + noise).round())  # rounded scores tie
    opinions = [opinion_of(_Fixed(table), users, _nothing(wanted)) for table in tables]
    pool = pooled(opinions, users, wanted)
    for weights in ({0: 1.0}, {1: 1.0}, {0: 0.3, 1: 1.0}):
        assert pool.ndcg(weights) == pytest.approx(pool.metrics(weights, 50)["ndcg@50"])


def test_a_mix_takes_the_parts_that_know_different_things() -> None:
    truth, *noise = _randoms(4)
    scorers = [_Fixed(truth + noise[0]), _Fixed(truth + noise[1]), _Fixed(noise[2])]
    first, second = _mixed(scorers, _best_of(truth)).items()
    assert {first[0], second[0]} == {0, 1}  # the third knows nothing
    assert first[1] == 1 and 0.4 < second[1] < 2.5


def test_a_part_of_a_mix_makes_way_for_a_better_one() -> None:
    a, b, c, noise = _randoms(4)
    scorers = [_Fixed(1.5 * a), _Fixed(b + c + 0.8 * noise), _Fixed(b), _Fixed(c)]
    wanted = _best_of(1.5 * a + b + c)
    assert set(_mixed(scorers, wanted, most=2)) == {0, 1}
    found = _mixed(scorers, wanted)
    assert set(found) == {0, 2, 3}
    assert found[2] / found[0] == pytest.approx(2 / 3, rel=0.25)


def test_scores_that_stand_out_far_get_a_small_weight() -> None:
    truth, noise, other, hint = _randoms(4)
    told = (truth > 2.8) & (hint > 1)  # a few of the best, and of nothing else anything
    loud = _Fixed((1e-2 * other + told).astype(np.float32))
    assert _mixed([_Fixed(truth + noise), loud], _best_of(truth))[1] < 0.1


@pytest.mark.parametrize("n_items", [90, 400])  # a pool that is everything, and one that is not
def test_a_pool_of_the_best_items_ranks_as_all_items_do(n_items: int) -> None:
    random = np.random.default_rng(1)
    scorers = [_Fixed(random.standard_normal((300, n_items), np.float32)) for _ in range(3)]
    pairs = random.random((300, n_items))
    seen, wanted = (
        Interactions.build(users, items, 300, n_items)
        for low in (0.1, 0.5)
        for users, items in [np.nonzero((pairs > low) & (pairs < low + 0.1))]
    )
    users = np.flatnonzero(wanted.user_degrees).astype(np.int32)
    some = users % 3 == 0
    pool = pooled([opinion_of(one, users, seen) for one in scorers], users, wanted).of(some)
    blend = BlendScorer(scorers, [1.0, 0.7, 0.4])
    for k in (20, mixing.DEPTH):
        of_all_items = evaluate(blend, wanted, seen, ks=(k,), users=users[some])
        of_pool = pool.metrics({0: 1.0, 1: 0.7, 2: 0.4}, k)
        assert of_pool == pytest.approx({name: of_all_items[name] for name in of_pool}, rel=1e-4)

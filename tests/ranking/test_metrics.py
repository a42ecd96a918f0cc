"""Every formula against a list worked out by hand.

User 0 is shown items 0 1 2 3 4 and wants 1, 3 and 9; user 1 is shown the same and wants 7; user 2
has nothing to test and counts for nothing.
"""

import math

import numpy as np
import pytest

from ltocf.errors import ConfigError, DataError
from ltocf.ranking.metrics import evaluate, list_metrics
from tests.conftest import interactions_of

SEEN_NOTHING = interactions_of([], 3, 10)


def shows_zero_to_four(users: np.ndarray) -> np.ndarray:
    return np.tile(np.arange(10, 0, -1, dtype=np.float32), (len(users), 1))


@pytest.fixture(scope="module")
def metrics():
    test = interactions_of([(0, 1), (0, 3), (0, 9), (1, 7)], 3, 10)
    return evaluate(shows_zero_to_four, test, SEEN_NOTHING, ks=(2, 5))


@pytest.mark.parametrize(
    ("name", "of_user_0"),
    [
        ("recall@5", 2 / 3),  # divided by the number of test items
        ("recall@2", 1 / 3),
        ("precision@5", 2 / 5),
        ("hit@5", 1),
        ("mrr@5", 1 / 2),
        ("map@5", (1 / 2 + 2 / 4) / 3),
        ("map@2", (1 / 2) / 2),
        (
            "ndcg@5",
            (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / math.log2(4)),
        ),
        ("ndcg@2", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
    ],
)
def test_metric_is_the_mean_over_user_0_and_user_1_whose_value_is_zero(metrics, name, of_user_0):
    assert metrics[name] == pytest.approx(of_user_0 / 2)


def test_coverage_is_the_share_of_items_in_somebodys_list(metrics):
    assert metrics["coverage@5"] == 0.5
    assert metrics["coverage@2"] == 0.2


def test_what_was_seen_in_training_is_no_candidate():
    seen = interactions_of([(0, 0), (0, 1)], 1, 10)
    test = interactions_of([(0, 2)], 1, 10)
    assert evaluate(shows_zero_to_four, test, seen, ks=(1,))["recall@1"] == 1


def test_a_perfect_list_scores_one_everywhere():
    hits = np.array([[True, True, False]])
    perfect = list_metrics(hits, np.array([2]), ks=(2,))
    assert {float(value.mean()) for value in perfect.values()} == {1.0}


def test_a_list_longer_than_the_catalogue_ends_with_the_catalogue():
    test = interactions_of([(0, 9)], 1, 10)
    assert evaluate(shows_zero_to_four, test, SEEN_NOTHING, ks=(50,))["recall@50"] == 1


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True])
def test_a_length_that_is_no_count_is_refused(k):
    test = interactions_of([(0, 9)], 1, 10)
    with pytest.raises(ConfigError, match="must be a whole number of at least 1"):
        evaluate(shows_zero_to_four, test, SEEN_NOTHING, ks=(k,))


def test_nothing_to_test_is_an_error():
    with pytest.raises(DataError, match="no user has test items"):
        evaluate(shows_zero_to_four, SEEN_NOTHING, SEEN_NOTHING)

"""Old history and events meet in the order of time."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions
from ltocf.data.times import clock
from ltocf.recommend.people import Person, joined_histories
from ltocf.scorers.scorer import NOBODY
from tests.histories import history_matrix


def person(row, items, times):
    return Person(row, np.array(items, np.int32), np.array(times, np.int64))


def of(timestamps):
    """User 0 has items 1 and 4, user 1 has item 2."""
    stamps = None if timestamps is None else np.array(timestamps)
    return Interactions.build(np.array([0, 0, 1]), np.array([1, 4, 2]), 2, 6, stamps)


def test_without_events_it_is_the_history_of_the_data(hamlet):
    train = hamlet.split.train
    joined = joined_histories(train, [Person(row) for row in range(train.n_users)])
    assert_array_equal(joined.toarray(), histories_of(train).toarray())


def test_a_newcomers_history_is_in_the_order_given():
    items = np.array([3, 0, 3, 5], np.int32)
    joined = joined_histories(of([7, 8, 9]), [Person.of_history(items)])
    assert_array_equal(joined.toarray(), history_matrix([items], 6).toarray())


def test_events_take_their_place_among_the_old_items():
    joined = joined_histories(of([10, 30, 5]), [person(0, [2, 5], [20, 40])])
    # 1 at 10, 2 at 20, 4 at 30, 5 at 40: how many came later is 3, 2, 1 and 0
    assert_array_equal(joined.toarray()[0], np.float32([0, 1 / 4, 1 / 3, 0, 1 / 2, 1]))


def test_of_an_item_that_comes_twice_the_first_time_counts():
    joined = joined_histories(of([10, 30, 5]), [person(0, [1, 4, 4], [50, 40, 20])])
    assert_array_equal(joined.toarray()[0], np.float32([0, 1 / 2, 0, 0, 1, 0]))


def test_old_items_without_times_came_before_every_event():
    joined = joined_histories(of(None), [person(0, [0], [-5])])
    assert_array_equal(joined.toarray()[0], np.float32([1, 1 / 2, 0, 0, 1 / 2, 0]))


def test_a_newcomer_has_only_their_events():
    joined = joined_histories(of([1, 2, 3]), [person(NOBODY, [0], [9]), person(NOBODY, [], [])])
    assert_array_equal(joined.toarray(), [[1, 0, 0, 0, 0, 0], [0] * 6])


@pytest.mark.parametrize(
    ("latest", "microseconds"),
    [(17, 10**6), (1_700_000_000, 10**6), (1_700_000_000_000, 10**3), (1_700_000_000_000_000, 1)],
)
def test_the_clock_of_the_data_is_known_by_its_latest_time(latest, microseconds):
    assert clock(of([0, 1, latest])) == microseconds
    assert clock(of(None)) == 10**6

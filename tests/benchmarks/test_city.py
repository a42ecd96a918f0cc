import numpy as np
import pytest
from benchmarks.city import CIRCLE, TESTED, make_city

from ltocf.machine.threads import use_threads
from ltocf.ranking.metrics import evaluate


@pytest.fixture(scope="module")
def city():
    return make_city(100_000)


def test_a_city_is_as_large_as_asked_for_and_a_tenth_of_it_is_tested(city):
    split = city.dataset.split
    whole = len(split.train) + len(split.test)
    assert whole == pytest.approx(100_000, rel=0.05)
    assert len(split.test) / whole == pytest.approx(TESTED, abs=0.01)
    assert (split.train.n_users, split.train.n_items) == (2000, 1000)
    assert split.train.user_degrees.min() >= 1


def test_pairs_ascend_and_none_is_twice(city):
    train, test = city.dataset.split.train, city.dataset.split.test
    keys = [part.users.astype(np.int64) * part.n_items + part.items for part in (train, test)]
    assert all((np.diff(key) > 0).all() for key in keys)
    assert not np.intersect1d(*keys).size


def test_a_city_is_the_same_for_a_seed_and_any_number_of_threads(city):
    try:
        use_threads(1)
        again, other = make_city(100_000).dataset, make_city(100_000, seed=1).dataset
    finally:
        use_threads()
    assert again.split.train.fingerprint == city.dataset.split.train.fingerprint
    assert other.split.train.fingerprint != city.dataset.split.train.fingerprint


def test_probabilities_are_those_by_which_people_chose(city):
    """Of what everybody took, the truth expects as much in each half of the places."""
    split = city.dataset.split
    people = np.arange(split.train.n_users, dtype=np.int32)
    truth = city.probabilities(people).numpy()
    np.testing.assert_allclose(truth.sum(1), 1, rtol=1e-4)
    likely = truth > np.median(truth, axis=1, keepdims=True)
    assert likely[split.test.users, split.test.items].mean() > 0.9


@pytest.mark.parametrize("interactions", [200_000, 600_000])
def test_who_knows_the_truth_finds_as_much_in_a_city_of_any_size(interactions):
    city = make_city(interactions)
    split = city.dataset.split
    found = evaluate(city.probabilities, split.test, split.train)["recall@20"]
    assert found == pytest.approx(0.265, abs=0.02)


def test_a_small_city_is_one_too():
    split = make_city(1000).dataset.split
    assert split.train.n_items == 4 * CIRCLE and len(split.test)

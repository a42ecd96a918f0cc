import numpy as np
import pytest
from scipy.stats import chisquare

from ltocf.draws import half_bits, shuffled, unshuffled

KEY = np.uint64(12345)


def permutation(n: int, key: np.uint64 = KEY) -> list[int]:
    return [shuffled(key, position, n, half_bits(n)) for position in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 255, 1000, 4097])
def test_every_number_has_one_place(n):
    assert sorted(permutation(n)) == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 17, 1000, 70_000])
def test_unshuffling_a_place_gives_its_number(n):
    places = permutation(n)
    assert [unshuffled(KEY, place, n, half_bits(n)) for place in places] == list(range(n))


def test_no_place_is_likelier_than_another():
    """Each of 8 numbers to each of 8 places, over 4,000 keys."""
    counts = np.zeros((8, 8))
    for key in range(4000):
        drawn = permutation(8, np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
        counts[np.arange(8), drawn] += 1
    assert chisquare(counts, axis=None, ddof=14).pvalue > 1e-4


def test_neighbours_do_not_stay_neighbours():
    drawn = np.array(permutation(10_000))
    assert np.mean(np.abs(np.diff(drawn)) < 100) < 0.03  # by chance, 0.02
    assert abs(np.corrcoef(drawn, np.arange(10_000))[0, 1]) < 0.05


def test_keys_give_different_permutations():
    assert permutation(100) != permutation(100, np.uint64(54321))

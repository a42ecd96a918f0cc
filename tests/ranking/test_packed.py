"""Lists by products of vectors, without a table of scores."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ltocf.ranking.packed import PackedItems
from ltocf.ranking.top_k import MANY, Products, top_k
from tests.conftest import interactions_of
from tests.ranking.test_top_k import full_sort

NO_PAIRS = np.zeros(1000, np.int64), np.empty(0, np.int32)


def whole_numbers(n_users: int, n_items: int, dim: int, seed: int = 0, most: int = 3):
    """Vectors whose products have no rounding errors, and many ties."""
    random = np.random.default_rng(seed)
    sizes = (n_users, dim), (n_items, dim)
    return [random.integers(-most, most + 1, size).astype(np.float32) for size in sizes]


@given(
    st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 200), st.integers(0, 9),
    st.integers(1, 30),
)  # fmt: skip
def test_lists_are_a_full_sort_with_ties_to_the_lower_item(seed, n_users, n_items, dim, k):
    users, items = whole_numbers(n_users, n_items, dim, seed)
    mask = np.random.default_rng(seed).random((n_users, n_items)) < 0.3
    seen = interactions_of(list(zip(*np.nonzero(mask), strict=True)), n_users, n_items)
    owners = np.arange(n_users, dtype=np.int32)
    found, scores = PackedItems.of(items).best(users, k, seen.indptr, seen.items, owners)
    every = users @ items.T
    expected = full_sort(every, k, [set(np.flatnonzero(row)) for row in mask])
    assert_array_equal(found, expected)
    own = np.take_along_axis(every, np.maximum(expected, 0), 1)
    assert_array_equal(scores, np.where(expected < 0, -np.inf, own))


@pytest.mark.parametrize(("n_items", "dim", "n_users", "k"), [(9000, 65, 301, 20), (5000, 3, 9, 1)])
def test_many_items_of_any_length_are_ranked_as_by_a_full_sort(n_items, dim, n_users, k):
    users, items = whole_numbers(n_users, n_items, dim, most=100)
    items[: n_items // 2] *= 50  # what comes later cannot be in a list, and is passed over
    users[0] = 0
    owners = np.zeros(n_users, np.int32)
    found, _ = PackedItems.of(items).best(users, k, *NO_PAIRS, owners)
    assert_array_equal(found, full_sort(users @ items.T, k, [set()] * n_users))


def test_seen_items_are_those_of_the_owner_not_of_the_row():
    users, items = whole_numbers(1, 3, 4, seed=1)
    indptr, seen = np.array([0, 1, 3]), np.array([0, 0, 2], np.int32)
    found, _ = PackedItems.of(items).best(users, 3, indptr, seen, np.array([1], np.int32))
    assert found.tolist() == [[1, -1, -1]]


def test_a_score_does_not_depend_on_who_else_is_ranked():
    random = np.random.default_rng(0)
    users, items = (random.standard_normal((n, 70), dtype=np.float32) for n in (100, 500))
    packed, owners = PackedItems.of(items), np.zeros(100, np.int32)
    _, together = packed.best(users, 20, *NO_PAIRS, owners)
    for user in (0, 41, 99):
        _, alone = packed.best(users[user : user + 1], 20, *NO_PAIRS, owners[:1])
        assert_array_equal(alone[0], together[user])


def test_a_scorer_of_products_is_ranked_as_one_that_only_gives_scores():
    users, items = whole_numbers(MANY + 5, 300, 8)

    class Scorer:
        def products(self):
            return Products(items, lambda rows: users[rows])

        def __call__(self, rows):
            raise AssertionError("no table of scores is needed")

    rows = np.arange(len(users), dtype=np.int32)[::-1].copy()
    seen = interactions_of([(0, 3), (5, 7)], len(users), len(items))
    done: list[int] = []
    ours = top_k(Scorer(), rows, 9, n_items=300, seen=seen, progress=done.append)
    plain = top_k(lambda rows: users[rows] @ items.T, rows, 9, n_items=300, seen=seen)
    assert_array_equal(ours.items, plain.items)
    assert_array_equal(ours.scores, plain.scores)
    assert done[-1] == len(users)


@pytest.mark.parametrize("told", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}])
def test_processors_with_small_registers_find_the_same(tmp_path, told):
    program = (
        "import numpy as np\n"
        "from ltocf.ranking.packed import PackedItems, VECTORS\n"
        "from tests.ranking.test_packed import NO_PAIRS, whole_numbers\n"
        "assert VECTORS == 1\n"
        "users, items = whole_numbers(40, 500, 20, seed=3)\n"
        "found = PackedItems.of(items).best(users, 5, *NO_PAIRS, np.zeros(40, np.int32))\n"
        "print(found[0].tolist())\n"
    )
    environment = os.environ | told | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    users, items = whole_numbers(40, 500, 20, seed=3)
    assert done.stdout.strip() == str(full_sort(users @ items.T, 5, [set()] * 40).tolist())

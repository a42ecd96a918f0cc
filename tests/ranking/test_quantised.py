"""Candidates by rounded scores."""

import os
import subprocess
import sys

import numpy as np
import pytest

from ltocf.ranking.quantised import QuantisedItems

NO_PAIRS = np.zeros(100, np.int64), np.empty(0, np.int32)


def drawn(n_items: int, dim: int, n_users: int, seed: int = 0):
    random = np.random.default_rng(seed)
    items = random.integers(-127, 128, (n_items, dim)).astype(np.float32)
    users = random.integers(-127, 128, (n_users, dim)).astype(np.float32)
    items[0] = users[:, 0] = 127  # so that whole numbers stay what they are
    return items, users


@pytest.mark.parametrize(("n_items", "dim", "n_users"), [(1, 1, 1), (33, 3, 5), (9000, 65, 301)])
def test_candidates_are_the_best_by_whole_numbers(n_items, dim, n_users):
    items, users = drawn(n_items, dim, n_users)
    index = QuantisedItems.of(items, np.arange(n_items, dtype=np.int32))
    owners = np.zeros(n_users, np.int32)
    found = index.candidates(users, 7, *NO_PAIRS, owners)
    scores = users.astype(np.int64) @ items.T.astype(np.int64)
    for of_user, candidates in zip(scores, found, strict=True):
        there = candidates[candidates >= 0]
        assert len(there) == len(set(there)) == min(7, n_items)
        assert sorted(of_user[there]) == sorted(of_user)[-7:]


def test_what_a_user_has_and_what_is_not_among_the_rows_is_no_candidate():
    items, users = drawn(100, 8, 2)
    index = QuantisedItems.of(items, np.arange(50, 100, dtype=np.int32))
    indptr, seen = np.array([0, 2, 4]), np.array([51, 60, 70, 98], np.int32)
    found = index.candidates(users, 100, indptr, seen, np.array([1, 0], np.int32))
    rest = set(range(50, 100))
    assert [set(of[of >= 0]) for of in found] == [
        rest - {70, 98},
        rest - {51, 60},
    ]


def test_vectors_of_zeros_have_candidates_too():
    index = QuantisedItems.of(np.zeros((40, 4), np.float32), np.arange(40, dtype=np.int32))
    found = index.candidates(np.zeros((1, 4), np.float32), 3, *NO_PAIRS, np.zeros(1, np.int32))
    assert (found >= 0).all()


@pytest.mark.parametrize("told", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}])
def test_processors_without_the_instruction_find_the_same(tmp_path, told):
    program = (
        "import numpy as np\n"
        "from ltocf.ranking.quantised import QuantisedItems, _multiplies_bytes\n"
        "assert not _multiplies_bytes()\n"
        "random = np.random.default_rng(3)\n"
        "items, users = (random.standard_normal((n, 20), dtype=np.float32) for n in (500, 9))\n"
        "index = QuantisedItems.of(items, np.arange(500, dtype=np.int32))\n"
        "pairs = np.zeros(10, np.int64), np.empty(0, np.int32)\n"
        "found = index.candidates(users, 5, *pairs, np.zeros(9, np.int32))\n"
        "print(np.sort(found, axis=1).tolist())\n"
    )
    environment = os.environ | told | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    random = np.random.default_rng(3)
    items, users = (random.standard_normal((n, 20), dtype=np.float32) for n in (500, 9))
    index = QuantisedItems.of(items, np.arange(500, dtype=np.int32))
    found = index.candidates(users, 5, *NO_PAIRS, np.zeros(9, np.int32))
    assert done.stdout.strip() == str(np.sort(found, axis=1).tolist())

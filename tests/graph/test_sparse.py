"""Products of sparse matrices against SciPy's and against sorting."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ltocf.graph.kernels.sparse import product, shrunk_cosines, times

RANDOM = np.random.default_rng(0)


def drawn(rows: int, columns: int) -> csr_array:
    values = RANDOM.integers(1, 5, (rows, columns))  # sums are exact, and many are tied
    matrix = np.where(RANDOM.random((rows, columns)) < 0.2, values, 0)
    return csr_array(matrix.reshape(rows, columns), dtype=np.float32)


LEFT, RIGHT = drawn(200, 60), drawn(60, 150)
WHOLE = (LEFT @ RIGHT).toarray()


def test_a_product_is_scipys() -> None:
    np.testing.assert_array_equal(product(LEFT, RIGHT).toarray(), WHOLE)
    np.testing.assert_array_equal(times(LEFT, RIGHT), WHOLE)
    np.testing.assert_array_equal(times(LEFT, RIGHT.toarray()), WHOLE)
    ones = csr_array(RIGHT > 0, dtype=np.float32)
    np.testing.assert_array_equal(times(LEFT, ones, ones=True), (LEFT @ ones).toarray())


def test_a_diagonal_that_is_not_wanted_is_left_out() -> None:
    expected = WHOLE.copy()
    np.fill_diagonal(expected, 0)
    found = product(LEFT, RIGHT, diagonal=False)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == np.count_nonzero(expected)


@pytest.mark.parametrize("k", [1, 7, 149, 1000])
def test_the_largest_of_a_row_are_those_of_a_stable_sort(k: int) -> None:
    order = np.argsort(-WHOLE, axis=1, kind="stable")[:, :k]
    expected = np.zeros_like(WHOLE)
    np.put_along_axis(expected, order, np.take_along_axis(WHOLE, order, 1), 1)
    np.testing.assert_array_equal(product(LEFT, RIGHT, largest=k).toarray(), expected)


def test_cosines_are_shrunk_by_what_is_added_to_the_denominator() -> None:
    R = drawn(40, 30).toarray()
    lengths = np.linalg.norm(R, axis=0)
    expected = R.T @ R / (np.outer(lengths, lengths) + 10)
    np.fill_diagonal(expected, 0)
    found = shrunk_cosines(csr_array(R), 30, 10.0)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)


def test_an_empty_matrix_has_an_empty_product() -> None:
    empty = csr_array((0, 60), dtype=np.float32)
    assert product(empty, RIGHT).shape == times(empty, RIGHT).shape == (0, 150)


def test_a_whole_product_has_its_columns_in_order() -> None:
    wide = csr_array(np.hstack([WHOLE] * 60))  # more columns than 64 words of 64 bits
    found = product(csr_array(np.eye(200, dtype=np.float32)), wide, diagonal=False)
    for row in range(200):
        columns = found.indices[found.indptr[row] : found.indptr[row + 1]]
        assert list(columns) == [c for c in np.flatnonzero(wide[[row]].toarray()[0]) if c != row]

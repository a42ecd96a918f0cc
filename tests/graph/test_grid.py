"""Four processes that share rows and columns, against one that has everything."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ltocf.data.interactions import Interactions
from ltocf.filters.chebyshev import chebyshev_filter
from ltocf.graph.bipartite import BipartiteGraph
from tests.test_distributed import start

USERS, ITEMS, DIM, PAIRS = 60, 41, 16, 300  # 101 nodes: no two groups have as many


@pytest.mark.parametrize(("row_groups", "column_groups"), [(2, 2), (4, 1)])
def test_a_grid_of_processes_filters_as_one_does(
    tmp_path: Path, row_groups: int, column_groups: int
) -> None:
    random = np.random.default_rng(0)
    drawn = random.integers(0, USERS, PAIRS), random.integers(0, ITEMS, PAIRS)
    train = Interactions.build(*drawn, user_ids=USERS, item_ids=ITEMS)
    E, G = random.standard_normal((2, USERS + ITEMS, DIM))
    coefficients = random.standard_normal(5)
    np.savez(
        tmp_path / "given.npz", users=train.users, items=train.items, sizes=[USERS, ITEMS],
        E=E, G=G, coefficients=coefficients,
    )  # fmt: skip
    worker = Path(__file__).parent / "grid_worker.py"
    done = start(4, tmp_path, row_groups, column_groups, script=worker)
    assert done.returncode == 0, done.stderr
    parts = [np.load(tmp_path / f"{rank}.npz") for rank in range(4)]

    table = torch.from_numpy(E).requires_grad_()
    series = torch.from_numpy(coefficients).requires_grad_()
    h = chebyshev_filter(BipartiteGraph(train), table, series)
    h.backward(torch.from_numpy(G))
    for part in parts:
        rows, columns = part["rows"], part["columns"]
        for found, whole in ((part["h"], h.detach()), (part["by_E"], table.grad)):
            expected = whole.numpy()[np.ix_(rows, columns)]
            np.testing.assert_allclose(found[: len(rows)], expected, atol=1e-12)
            assert not found[len(rows) :].any()
        np.testing.assert_allclose(part["by_coefficient"], series.grad.numpy(), rtol=1e-10)
        # Its rows of 8 bytes a number, to every other row group, before each of four products.
        share = -(-(USERS + ITEMS) // row_groups)
        model = 4 * (row_groups - 1) * share * DIM // column_groups * 8
        assert part["sent"] == part["model"] == model
    assert max(part["pairs"] for part in parts) < len(train)

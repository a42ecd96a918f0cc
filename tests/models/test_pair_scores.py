import pytest
import torch
from torch.testing import assert_close

from ltocf.models.pair_scores import count_rows, hardest, pair_scores, squared_norms

GENERATOR = torch.Generator().manual_seed(0)
LEFT = torch.randint(0, 7, (40,), generator=GENERATOR)
RIGHT = torch.randint(0, 7, (40, 3), generator=GENERATOR)


def table(dim: int = 5, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    random = torch.rand(7, dim, dtype=dtype, generator=torch.Generator().manual_seed(1))
    return random.requires_grad_()


# With rows of whole registers of 64 bytes and without, for one thread and shared by two.
@pytest.mark.parametrize("dim", [5, 16, 24, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pair_scores_and_their_gradient_are_those_of_plain_indexing(dim, dtype):
    ours, theirs = table(dim, dtype), table(dim, dtype)
    upstream = torch.rand(40, 3, dtype=dtype, generator=GENERATOR)
    scores = pair_scores(ours, LEFT, RIGHT)
    expected = (theirs[LEFT].unsqueeze(1) * theirs[RIGHT]).sum(-1)
    assert_close(scores, expected)
    scores.backward(upstream)
    expected.backward(upstream)
    assert_close(ours.grad, theirs.grad)


def test_squared_norms_and_their_gradient_are_those_of_plain_indexing():
    ours, theirs = table(), table()
    total = squared_norms(ours, count_rows(7, LEFT, RIGHT).double())
    expected = theirs[LEFT].square().sum() + theirs[RIGHT].square().sum()
    assert_close(total, expected)
    total.backward()
    expected.backward()
    assert_close(ours.grad, theirs.grad)


def test_hardest_is_the_highest_scored():
    values = table().detach()
    scores = pair_scores(values, LEFT, RIGHT)
    chosen = pair_scores(values, LEFT, hardest(values, LEFT, RIGHT))
    assert_close(chosen[:, 0], scores.max(1).values)

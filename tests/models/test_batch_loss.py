"""A batch in chunks against the same batch in one, and against plain indexing."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import BPR, Loss, SLatK, Softmax
from ltocf.distributed import Columns
from ltocf.models.batch_loss import batch_loss
from ltocf.models.losses import score_loss

USERS, ITEMS, PAIRS = 6, 9, 40
GENERATOR = torch.Generator().manual_seed(0)
BATCH = Batch(
    torch.randint(0, USERS, (PAIRS,), generator=GENERATOR),
    torch.randint(0, ITEMS, (PAIRS,), generator=GENERATOR),
    torch.randint(0, ITEMS, (PAIRS, 3), generator=GENERATOR),
    torch.randn(PAIRS, dtype=torch.float64, generator=GENERATOR),
)
OWN = [BPR(), BPR(sampling="uniform"), Softmax(sampling="uniform"), SLatK(sampling="uniform")]
LOSSES = [*OWN, Softmax(negatives=5), SLatK(negatives=5)]


def table() -> Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randn(USERS + ITEMS, 4, dtype=torch.float64, generator=random).requires_grad_()


def in_chunks(*sizes: int) -> ChunkedBatch:
    columns = zip(*(column.split(sizes) for column in BATCH), strict=True)
    return ChunkedBatch(PAIRS, (Batch(*chunk) for chunk in columns))


def ours(batch: ChunkedBatch, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
    rows = table()
    mean, counts = batch_loss(
        rows,
        batch,
        USERS,
        loss,
        lambda near, far, thresholds: score_loss(near[:, 0], far, loss, thresholds),
        Columns(),
    )
    (3 * mean).backward()  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    return mean.detach(), rows.grad, counts


def plain(loss: Loss) -> tuple[Tensor, Tensor]:
    """The same by gathering everything and letting torch differentiate."""
    rows = table()
    users, items = rows[:USERS][BATCH.users], rows[USERS:]
    far = (users[:, None] * items[BATCH.negatives]).sum(-1)
    if loss.sampling == "hardest":
        far = far.max(1, keepdim=True).values
    if loss.sampling == "shared":
        far = users @ items[BATCH.negatives.flatten()[: loss.negatives]].T
    near = (users * items[BATCH.positives]).sum(-1)
    mean = score_loss(near, far, loss, BATCH.thresholds)
    (3 * mean).backward()  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    return mean.detach(), rows.grad


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.sampling}")
def test_the_loss_and_its_gradient_are_those_of_plain_indexing(loss: Loss) -> None:
    mean, gradient, _ = ours(in_chunks(PAIRS), loss)
    expected_mean, expected_gradient = plain(loss)
    assert_close(mean, expected_mean)
    assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("loss", OWN, ids=lambda loss: f"{loss.name}-{loss.sampling}")
def test_parts_change_nothing(loss: Loss) -> None:
    assert_close(ours(in_chunks(17, 1, 22), loss), ours(in_chunks(PAIRS), loss))


def test_rows_are_counted_once_a_pair_and_negatives_by_their_mean() -> None:
    counts = ours(in_chunks(17, 23), BPR(sampling="uniform"))[2]
    expected = torch.zeros(USERS + ITEMS, dtype=torch.float64)
    for user, positive, negatives, _ in zip(*BATCH, strict=True):
        expected[user] += 1
        expected[USERS + positive] += 1
        for negative in negatives:
            expected[USERS + negative] += 1 / 3
    assert_close(counts, expected)

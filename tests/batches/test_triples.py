import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.stats import chisquare

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.batches.triples import TripleBatches, _skip_own
from ltocf.machine.threads import use_threads
from tests.conftest import interactions_of

DATA = interactions_of([(0, 0), (0, 2), (0, 5), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)], 4, 6)


def draw(data=DATA, **changes) -> Batch:
    options = {"batch_size": 3, "negatives": 2, "seed": 0, "epoch": 1} | changes
    parts = [part for batch in TripleBatches(data, **options) for part in batch.chunks]
    return ChunkedBatch(sum(len(part.users) for part in parts), iter(parts)).whole()


def test_an_epoch_visits_every_interaction_once():
    batch = draw()
    pairs = sorted(zip(batch.users.tolist(), batch.positives.tolist(), strict=True))
    assert pairs == list(zip(DATA.users.tolist(), DATA.items.tolist(), strict=True))


def test_the_number_of_batches_is_known_beforehand():
    batches = TripleBatches(DATA, batch_size=3, negatives=1, seed=0, epoch=1)
    assert len(batches) == len(list(batches)) == 3


def test_negatives_are_uniform_over_what_the_user_has_not():
    batch = draw(negatives=4000)
    for user, negatives in zip(batch.users.tolist(), batch.negatives.numpy(), strict=True):
        unseen = np.setdiff1d(np.arange(6), DATA.items_of(user))
        counts = np.bincount(negatives, minlength=6)
        assert counts.sum() == counts[unseen].sum()
        assert chisquare(counts[unseen]).pvalue > 1e-4


@pytest.mark.parametrize("n_own", [0, 1, 2, 3, 64, 70, 299])
def test_the_unseen_item_of_every_rank_is_found(n_own):
    own = np.sort(np.random.default_rng(n_own).permutation(300)[:n_own]).astype(np.int32)
    unseen = np.setdiff1d(np.arange(300), own)
    ranks, skipped = np.arange(len(unseen), dtype=np.int32), np.empty(len(unseen), np.int32)
    beside = np.concatenate([[7], own, [0]]).astype(np.int32)  # other people's items
    _skip_own(beside, 1, 1 + n_own, ranks, skipped)
    assert_array_equal(ranks + skipped, unseen)


def test_few_negatives_are_the_first_of_many():
    many, few = draw(negatives=16), draw(negatives=15)
    assert_array_equal(many.negatives[:, :15], few.negatives)


def test_users_scheme_draws_users_uniformly_and_then_their_items():
    data = interactions_of([(0, 0)] + [(1, i) for i in range(999)], 3, 1000)
    users = np.concatenate([draw(data, draw_by="users", epoch=e).users for e in range(20)])
    share = (users == 0).mean()
    assert share == pytest.approx(0.5, abs=0.02)
    assert not (users == 2).any()  # they have nothing


def test_draws_do_not_depend_on_the_number_of_threads():
    try:
        use_threads(1)
        one = draw(batch_size=1)  # each pair is a chunk
        use_threads(3)
        assert_array_equal(one.negatives, draw(batch_size=1).negatives)
    finally:
        use_threads()


def test_seeds_and_epochs_differ_and_repeat():
    assert torch.equal(draw().negatives, draw().negatives)
    assert not torch.equal(draw().negatives, draw(epoch=2).negatives)
    assert not torch.equal(draw().negatives, draw(seed=1).negatives)


def test_a_user_who_has_everything_still_gets_negatives():
    data = interactions_of([(0, 0), (0, 1)], 1, 2)
    assert set(draw(data, negatives=50).negatives.flatten().tolist()) == {0, 1}

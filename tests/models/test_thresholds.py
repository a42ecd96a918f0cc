"""Users' k-th largest scores against a full sort, and who is given them."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltocf.batches.ahead import Batch, ChunkedBatch
from ltocf.config import SLatK, Softmax, TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import use_threads
from ltocf.models import MODELS, build_model, thresholds
from ltocf.models.thresholds import Thresholds, estimated
from tests.models.toys import fit, random_graph

USERS, ITEMS = 40, 300


def pairs() -> Interactions:
    """Users with 0 to 30 items, and one with all."""
    random = np.random.default_rng(0)
    held = random.random((USERS, ITEMS)) < 0.1 * random.random((USERS, 1))
    held[0], held[1] = False, True
    users, items = np.nonzero(held)
    return Interactions.build(users, items, USERS, ITEMS)


def drawn(data: Interactions) -> torch.Tensor:
    """Scores in which a user's own items are mostly, but not always, on top."""
    scores = torch.randn(USERS, ITEMS, generator=torch.Generator().manual_seed(0))
    scores[torch.from_numpy(data.users).long(), torch.from_numpy(data.items).long()] += 2
    return scores


def estimate(scores: torch.Tensor, data: Interactions, k: int, n: int, seed: int = 0):
    sample = np.random.default_rng(seed).permutation(ITEMS)[:n]
    pick = lambda users, items: scores[users[:, None], items]  # noqa: E731
    return estimated(pick, data, torch.from_numpy(sample), k)


@pytest.mark.parametrize("at_once", [1, 700, 1 << 16])
@pytest.mark.parametrize("k", [1, 7, 299, 300, 1000])
def test_with_all_items_sampled_thresholds_are_those_of_a_full_sort(monkeypatch, k, at_once):
    monkeypatch.setattr(thresholds, "AT_ONCE", at_once)
    data = pairs()
    scores = drawn(data)
    exact = scores.sort(1, descending=True).values[:, min(k, ITEMS) - 1]
    assert_close(estimate(scores, data, k, ITEMS), exact, rtol=0, atol=0)


def test_estimates_from_a_sample_have_the_right_rank_on_average():
    """A user's own items count once, not as often as a sampled one: those of the user who has all
    of them are exact, and so is any threshold among own items that stand above all others."""
    data, k = pairs(), 20
    scores = drawn(data)
    found = [estimate(scores, data, k, 100, seed) for seed in range(200)]
    ranks = torch.stack([(scores >= each[:, None]).sum(1) for each in found]).double()
    assert (ranks[:, 1] == k).all()
    assert (ranks.mean(0) - k).abs().max() < 2
    apart = scores.clone()
    apart[torch.from_numpy(data.users).long(), torch.from_numpy(data.items).long()] += 100
    many = torch.from_numpy(data.user_degrees >= k)
    exact = apart.sort(1, descending=True).values[:, k - 1]
    assert many.sum() > 1
    assert torch.equal(estimate(apart, data, k, 50)[many], exact[many])


@pytest.mark.parametrize("name", [n for n in MODELS if "slatk" in MODELS[n].losses])
def test_every_model_scores_pairs_as_its_loss_does_and_trains(name):
    graph = random_graph()
    model = build_model(graph, name, {})
    if model.solved(model.config):
        pytest.skip("solved, not trained")
    train = TrainConfig(epochs=2, batch_size=8, protocol="fixed", learning_rate=0.01)
    records = fit(model, train, SLatK(negatives=3, k=3, refresh_every=1), seed=0)
    assert all(np.isfinite(record.loss) for record in records)
    users, items = torch.arange(graph.n_users), torch.arange(graph.n_items)
    model.eval()
    scored = model.pair_scorer()(users, items.expand(len(users), -1).contiguous())
    listed = torch.from_numpy(model.scorer()(users.int().numpy()))
    assert not scored.requires_grad
    assert_close(scored, listed.to(scored), rtol=1e-4, atol=1e-5)


def test_thresholds_are_those_of_cosines_where_the_loss_is():
    model = build_model(random_graph(), "ltocf", {"normalise": "training"})
    model.initialise_(0)
    ours = Thresholds(SLatK(k=1), seed=0)
    ours.refresh_(model, epoch=1)
    assert ours.values is not None and ours.values.abs().max() <= 1 + 1e-6


def test_they_are_estimated_every_few_epochs_and_beside_the_users_of_a_batch():
    model = build_model(random_graph(), "mf", {})
    model.initialise_(0)
    ours, watched = Thresholds(SLatK(k=2, refresh_every=3), seed=0), list[int]()
    before = list[torch.Tensor]()
    for epoch in range(1, 5):
        ours.refresh_(model, epoch, lambda: watched.append(1))
        assert ours.values is not None
        before.append(ours.values)
        with torch.no_grad():
            model.weight.mul_(2)
    assert before[0] is before[1] is before[2]
    assert_close(before[3], 64 * before[0])
    assert watched
    users = torch.tensor([3, 0, 3])
    batch = ChunkedBatch.of(Batch(users, users, users[:, None]))
    assert torch.equal(ours.beside(batch).whole().thresholds, before[3][users])
    none = Thresholds(Softmax(), seed=0)
    none.refresh_(model, 1)
    assert none.beside(batch) is batch and none.state() == {}


def test_any_number_of_threads_finds_the_same():
    random = np.random.default_rng(1)
    data = Interactions.build(
        random.integers(0, 300, 3000), random.integers(0, 200, 3000), 300, 200
    )
    model = build_model(BipartiteGraph(data), "ltocf", {"dim": 8})
    model.initialise_(0)
    found = []
    try:
        for threads in (1, 3):
            use_threads(threads)
            ours = Thresholds(SLatK(k=5, sample=50), seed=0)
            ours.refresh_(model, 1)
            found.append(ours.values)
    finally:
        use_threads()
    assert torch.equal(*found)


def test_a_blend_and_a_walk_have_no_one_threshold_and_refuse():
    for name in ("blend", "hoprec"):
        options = {"members": [{"model": "ltocf", "weight": 1.0}]} if name == "blend" else {}
        model = build_model(random_graph(), name, options)
        with pytest.raises(ConfigError, match="cannot be trained with loss = 'slatk'"):
            fit(model, TrainConfig(epochs=1), SLatK(), seed=0)

from dataclasses import asdict

import numpy as np
import pytest
import torch

from ltocf.config import BPR, BSL, SLatK, Softmax, TrainConfig
from ltocf.data.splits import hold_out_validation
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.ranking import metrics
from ltocf.recommend.recommender import Recommender
from ltocf.training.records import TrainState
from ltocf.training.training import training_device
from tests.models.toys import fit

OPTIONS = {"dim": 8}
FAST = TrainConfig(epochs=4, batch_size=512, learning_rate=0.02, patience=99, average_decay=0.9)


@pytest.fixture(scope="module")
def split(hamlet):
    return hold_out_validation(hamlet.split, seed=0)


def train(split, config=FAST, loss=BPR(negatives=4), seed=0, options=OPTIONS, **arguments):  # noqa: B008
    model = build_model(BipartiteGraph(split.train), "ltocf", options)
    records = fit(model, config, loss, seed=seed, held_out=split.valid, **arguments)
    return model, records


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


# Stopped between two estimates of the thresholds, which then have to be in the state.
@pytest.mark.parametrize("loss", [BPR(negatives=4), SLatK(negatives=8, refresh_every=3)])
def test_interrupted_and_resumed_is_uninterrupted_bit_for_bit(split, loss):
    whole, records = train(split, loss=loss)
    saved: list[TrainState] = []

    def stop_after_two(state, record):
        copies = {name: tensor.clone() for name, tensor in state.tensors.items()}
        saved.append(TrainState(**(asdict(state) | {"tensors": copies})))
        if record.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(split, loss=loss, after_epoch=stop_after_two)
    resumed, rest = train(split, loss=loss, state=saved[-1])
    assert same(whole, resumed)
    assert [(r.loss, r.metrics, r.times) for r in rest] == [
        (r.loss, r.metrics, r.times) for r in records[2:]
    ]


def test_the_same_seed_is_the_same_run_and_another_is_not(split):
    one, _ = train(split)
    assert same(one, train(split)[0])
    assert not same(one, train(split, seed=1)[0])


def test_the_best_epoch_is_kept_and_patience_stops(split):
    hopeless = FAST.model_copy(update={"learning_rate": 50.0, "patience": 2, "epochs": 40})
    saved = []
    _, records = train(
        split, hopeless, after_epoch=lambda s, r: saved.append((s.best_epoch, s.stale))
    )
    best = max(records, key=lambda r: r.metrics["recall@20"])
    assert saved[-1] == (best.epoch, 2)
    assert len(records) < 40


@pytest.mark.parametrize("updates", ["alternate", "joint"])
def test_times_move_with_their_own_learning_rate_and_stay_ordered(split, updates):
    times = {"time_updates": updates, "time_every": 1, "time_learning_rate": 0.5}
    model, _ = train(split, options=OPTIONS | times | {"learn_times": "training"})
    times = [0.0, *model.extracted_times(), 4.0]
    assert times[1:-1] != [1.0, 2.0, 3.0]
    assert times == sorted(times)


def test_times_rest_while_embeddings_move_and_the_other_way_round(split):
    steps = -(-len(split.train) // FAST.batch_size)
    model, _ = train(
        split,
        FAST.model_copy(update={"epochs": 1}),
        options=OPTIONS | {"time_every": steps, "learn_times": "training"},
    )
    assert model.extracted_times() == [1.0, 2.0, 3.0]  # their first turn comes after that epoch
    assert model.times.inner.requires_grad


def test_fixed_times_do_not_move(split):
    model, _ = train(split, options=OPTIONS | {"learn_times": False})
    assert model.extracted_times() == [1.0, 2.0, 3.0]


def test_the_loss_falls(split):
    _, records = train(split)
    assert records[-1].loss < records[0].loss


@pytest.mark.parametrize(
    "loss",
    [
        Softmax(negatives=4, sampling="uniform"),
        Softmax(negatives=64),
        BSL(negatives=4, sampling="uniform", positive_temperature=0.2),
        SLatK(negatives=64),
        BPR(negatives=4, sampling="uniform"),
    ],
    ids=lambda loss: f"{loss.name}-{loss.sampling}",
)
def test_every_loss_trains(split, loss):
    _, records = train(split, loss=loss, options=OPTIONS | {"normalise": loss.name != "bpr"})
    assert records[-1].loss < records[0].loss


def test_a_diverging_loss_says_what_to_lower(split):
    diverging = FAST.model_copy(update={"learning_rate": 1e30, "average": 0.0})
    with pytest.raises(ConfigError, match="lower learning_rate"):
        train(split, diverging)


def test_a_closed_form_is_not_iterated(split):
    model = build_model(BipartiteGraph(split.train), "popularity", {})
    assert fit(model, FAST, BPR(), seed=0) == []
    assert model.scorer()(split.train.users[:1]).argmax() == split.train.item_degrees.argmax()


def test_a_gpu_that_is_not_there_is_one_clear_line(split, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ConfigError, match="torch sees no GPU here; use device=cpu"):
        train(split, FAST.model_copy(update={"device": "cuda"}))


def test_a_gpu_is_used_where_there_is_one_and_the_model_can(split, monkeypatch):
    graph = BipartiteGraph(split.train)
    ltocf, popularity = (build_model(graph, name, {}) for name in ("ltocf", "popularity"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert training_device(ltocf, "auto") == "cuda"
    assert training_device(popularity, "auto") == "cpu"
    assert training_device(ltocf, "cpu") == "cpu"


@pytest.mark.parametrize("each", [1, 3])
def test_a_sparse_log_trains_with_or_without_something_to_choose_the_epoch_by(
    ltocf, tmp_path, each
):
    rows = [f"u{user},i{(user * 7 + item * 3) % 20}" for user in range(100) for item in range(each)]
    (tmp_path / "log.csv").write_text("user,item\n" + "\n".join(rows) + "\n")
    split = "none" if each == 1 else "ratio"
    code, _, err = ltocf("prepare", tmp_path / "log.csv", "-o", tmp_path / "data", "--split", split)
    assert code == 0, err
    if split == "none":
        recommender = Recommender("ltocf", protocol="validation", epochs=2, dim=4)
        assert recommender.fit(tmp_path / "data").recommend("u3", 2).height == 2
        return
    code, out, err = ltocf(
        "train", tmp_path / "data", "-o", tmp_path / "run", "model=ltocf", "epochs=2", "dim=4"
    )
    assert code == 0, err
    assert "Recall@20" in out


@pytest.mark.parametrize(
    "loss", [BPR(negatives=4), Softmax(negatives=8), BSL(negatives=8), SLatK(negatives=8)]
)
def test_a_training_that_learns_nothing_is_reported_after_the_first_epoch(split, caplog, loss):
    once = FAST.model_copy(update={"epochs": 1})
    train(split, once, loss)
    assert not caplog.records
    slow = once.model_copy(update={"learning_rate": 1e-6})
    train(split, slow, loss, options=OPTIONS | {"start": "random", "initial_std": 1e-4})
    assert "nothing is being learned" in caplog.text


def test_validation_ranks_a_sample_of_many_users_and_says_so(split, monkeypatch):
    everybody = np.count_nonzero(split.valid.user_degrees)
    assert all(record.sampled_users == 0 for record in train(split)[1])
    monkeypatch.setattr("ltocf.training.trainer.VALIDATED_USERS", 20)
    assert everybody > 20
    model, records = train(split, FAST.model_copy(update={"average_decay": 0.0}))
    assert all(record.sampled_users == 20 for record in records)
    users = metrics.testable_users(split.valid, 20, seed=0)
    best = max(record.metrics["recall@20"] for record in records)
    found = metrics.evaluate(model.scorer(), split.valid, split.train, users=users)["recall@20"]
    assert found == pytest.approx(best, abs=1e-6)

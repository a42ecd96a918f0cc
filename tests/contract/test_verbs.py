"""Every verb works on every model and on two blends, or says in one line why it does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.sources.town import make_town
from ltocf.errors import LtocfError
from ltocf.models import MODELS
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.export import export
from ltocf.recommend.recommender import Recommender
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.runs.update import update_run
from ltocf.search.tuning.tune import tune
from tests.models.toys import used_by

CLOSED = [
    {"model": "gfcf", "weight": 1.0, "options": {"rank": 4}},
    {"model": "sparse_ease", "weight": 0.5, "options": {"neighbours": 5}},
]
MIXED = [
    *CLOSED,
    {"model": "ltocf", "weight": 1.0, "options": {"dim": 4, "recency": 0.5}},
    {"model": "ease", "weight": 0.5, "options": {}},
]
SUBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in MODELS if name != "blend"},
    "blend of closed forms": ("blend", {"members": CLOSED}),
    "blend of solved and trained": ("blend", {"members": MIXED}),
}
everything = pytest.mark.parametrize("subject", SUBJECTS)


@cache
def hamlet() -> Dataset:
    return make_town(people=40, places=30, seed=2).dataset


def recommender(subject: str, **more: Any) -> Recommender:
    name, options = SUBJECTS[subject]
    fields = MODELS[name].Config.model_fields
    small = {key: 4 for key in ("dim", "rank") if key in fields}
    quick = used_by(name, **{"epochs": 2, "negatives": 2, "protocol": "fixed"} | more)
    return Recommender(name, **small, **options, **quick)


@cache
def fitted(subject: str) -> Recommender:
    return recommender(subject).fit(hamlet())


def lists(of: Recommender) -> pl.DataFrame:
    return of.recommend(of.fitted.seen.user_ids.ids.head(5).to_list(), 5)


def works_or_says_why_not(verb: Callable[[], Any]) -> None:
    try:
        verb()
    except LtocfError as refusal:
        message = str(refusal)
        assert message and "\n" not in message
        assert message[0].islower()


@everything
def test_save_and_load(subject: str, tmp_path: Path) -> None:
    fitted(subject).save(tmp_path / "run")
    assert lists(Recommender.load(tmp_path / "run")).equals(lists(fitted(subject)))


@everything
def test_train_and_resume(subject: str, tmp_path: Path) -> None:
    config = recommender(subject).config
    whole = start_run(config, tmp_path / "whole", dataset=hamlet())
    metrics = train_run(whole)
    broken = start_run(config, tmp_path / "broken", dataset=hamlet())

    def interrupt(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        if done == 2 and stage.startswith("training"):  # a closed form starts again
            raise KeyboardInterrupt

    try:
        train_run(broken, interrupt)
    except KeyboardInterrupt:
        state = broken.load_state()
        assert state is not None
        # A closed form's arrays are no part of what the next epoch depends on.
        assert all("inverse" not in key and "values" not in key for key in state.tensors)
        assert train_run(Run.open(broken.path)) == metrics
    assert Run.open(broken.path).metrics() == metrics


@everything
def test_update(subject: str, tmp_path: Path) -> None:
    fitted(subject).save(tmp_path / "run")
    item = hamlet().split.train.item_ids.ids[0]
    now = 2_000_000_000  # the town's times are seconds since 1970 too
    news = pl.DataFrame(
        {"user": ["somebody new"] * 2, "item": [item, "a new place"], "time": [now, now + 1]}
    )
    updated, added = update_run(Run.open(tmp_path / "run"), news, epochs=1)
    assert (added.users, added.items) == (1, 1)
    assert Recommender.load(updated.path).recommend("somebody new", 3).height == 3


@everything
def test_tune(subject: str, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    config = recommender(subject).config
    name = SUBJECTS[subject][0]
    choices = {
        "epochs=1|2": "epochs", "recency=0.0|0.5": "recency", "l2=1.0:9.0": "l2",
    }  # fmt: skip
    fields = MODELS[name].Config.model_fields
    trained = name == "blend" and "trained" in subject
    usable = [
        space for space, key in choices.items()
        if key in fields or (key == "epochs" and (trained or not MODELS[name].solved()))
    ]  # fmt: skip
    if name == "blend" and not trained:
        usable = []
    if not usable:
        return
    report = tune(hamlet(), config, tmp_path / "study", trials=1, space=usable[:1])
    assert report.recall > 0


@everything
def test_averaged_weights(subject: str) -> None:
    averaged = recommender(subject, average_decay=0.9).fit(hamlet())
    assert lists(averaged).height == 25


@everything
def test_new_users(subject: str) -> None:
    history = hamlet().split.train.item_ids.ids.head(3).to_list()
    works_or_says_why_not(lambda: fitted(subject).recommend_new(history, 3))


@everything
def test_explain(subject: str) -> None:
    users = hamlet().split.train.user_ids.ids
    item = hamlet().split.train.item_ids.ids[0]

    def explain() -> None:
        why = fitted(subject).explain(users[0], item)
        total = why.own + why.popularity + why.because["contribution"].sum()
        assert total == pytest.approx(why.score, rel=1e-3, abs=1e-4)

    works_or_says_why_not(explain)


@everything
def test_similar_items_and_users(subject: str) -> None:
    train = hamlet().split.train
    assert fitted(subject).similar_items(train.item_ids.ids[0], 3).height == 3
    assert fitted(subject).similar_users(train.user_ids.ids[0], 3).height == 3


@everything
def test_export(subject: str, tmp_path: Path) -> None:
    works_or_says_why_not(lambda: export(fitted(subject), tmp_path / "out", ["parquet"]))


@everything
def test_everybodys_list(subject: str, tmp_path: Path) -> None:
    report = recommend_all(fitted(subject), tmp_path / "lists.parquet", 3)
    assert report.users == hamlet().split.train.n_users

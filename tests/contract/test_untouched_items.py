"""Items of the catalogue that nobody touched work with every model and every verb."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.item_table import add_items
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.update import update_run
from tests.contract.test_verbs import everything, hamlet, recommender, works_or_says_why_not

NEW = pl.DataFrame(
    {
        "item": ["n1", "n2"],
        "name": ["First", "Second"],
        "kind": ["cafe", "bakery"],
        "tags": [["quiet"], ["loud", "late"]],
    }
)


@cache
def town() -> Dataset:
    return add_items(hamlet(), NEW)


@cache
def fitted(subject: str) -> Recommender:
    return recommender(subject).fit(town())


@everything
def test_scores_are_finite_and_lists_whole(subject: str) -> None:
    ours = fitted(subject)
    n_items, seen = ours.fitted.seen.n_items, ours.fitted.seen
    assert (seen.item_degrees[-2:] == 0).all()
    everybody = np.arange(5, dtype=np.int32)
    scores = ours.scorer(everybody)
    assert scores.shape == (5, n_items)
    assert np.isfinite(scores).all()
    users = seen.user_ids.ids.head(5).to_list()
    found = ours.recommend(users, n_items, keep_seen=True)
    assert (found.group_by("user").len()["len"] == n_items).all()
    assert np.isfinite(list(ours.evaluate([5]).values())).all()


@everything
def test_an_untouched_item_can_be_asked_about(subject: str) -> None:
    ours = fitted(subject)
    user = ours.fitted.seen.user_ids.ids[0]
    works_or_says_why_not(lambda: ours.similar_items("n1", 5))
    works_or_says_why_not(lambda: ours.explain(user, "n2"))
    works_or_says_why_not(lambda: ours.recommend_new(["n1"], 5))
    works_or_says_why_not(lambda: ours.recommend_new(["n1"], 5, gradient_steps=2))


@everything
def test_runs_updates_and_bulk_keep_untouched_items(subject: str, tmp_path: Path) -> None:
    ours = fitted(subject)
    ours.save(tmp_path / "run")
    again = Recommender.load(tmp_path / "run")
    assert again.dataset.catalogue.about(len(again.dataset.catalogue) - 1)["tags"] == [
        "loud",
        "late",
    ]
    recommend_all(again, tmp_path / "lists.csv", 40, keep_seen=True)
    listed = pl.read_csv(tmp_path / "lists.csv")
    assert set(listed.filter(pl.col("item") == "n2")["tags"]) == {"loud|late"}
    news = pl.DataFrame({"user": ["stranger"], "item": ["n1"]})
    more = pl.DataFrame({"item": ["n3"], "name": ["Third"]})
    updated, _ = update_run(
        Run.open(tmp_path / "run"), news, tmp_path / "next", epochs=1, names=more
    )
    seen = updated.dataset.split.seen
    assert seen.item_degrees[-3:].tolist() == [1, 0, 0]
    assert updated.dataset.catalogue.names[-3:] == ["First", "Second", "Third"]
    assert np.isfinite(Recommender.load(updated.path).scorer(np.arange(3, dtype=np.int32))).all()

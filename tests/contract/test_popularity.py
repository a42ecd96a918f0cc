"""Every model of vectors carries the weight of popularity through all that is done with it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import polars as pl
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.sources.town import make_town
from ltocf.errors import ConfigError
from ltocf.models import MODELS
from ltocf.recommend.export import export
from ltocf.recommend.new_users import new_vectors, score_new
from ltocf.recommend.recommender import Recommender
from ltocf.runs.refit import refit_run
from ltocf.runs.run import Run
from ltocf.runs.update import update_run
from ltocf.scorers.dot import DotScorer
from tests.histories import history_matrix
from tests.models.toys import used_by

WEIGHT = 0.7
NAMES = [name for name, kind in MODELS.items() if "popularity" in kind.Config.model_fields]
every_name = pytest.mark.parametrize("name", NAMES)
ROWS = np.arange(40, dtype=np.int32)


@cache
def hamlet() -> Dataset:
    return make_town(people=40, places=30, seed=2).dataset


@cache
def fitted(name: str) -> Recommender:
    """As if validation had chosen the weight: the settings do not say it."""
    quick = used_by(name, epochs=1, negatives=2, protocol="fixed")
    found = Recommender(name, dim=4, **quick).fit(hamlet())
    found.model.set_weight_("popularity", WEIGHT)
    return Recommender.wrap(found.model, hamlet(), found.config)


def dots(name: str) -> DotScorer:
    found = fitted(name).model.scorer()
    assert isinstance(found, DotScorer)
    return found


def test_they_are_all_models_of_vectors() -> None:
    expected = {
        "ltocf",
        "lightgcn",
        "mf",
        "grmf",
        "hoprec",
        "gcmc",
        "pinsage",
        "ngcf",
        "lrgccf",
        "hmlet",
    }
    assert set(NAMES) == expected


@every_name
def test_popularity_is_added_to_the_products(name: str) -> None:
    scorer = dots(name)
    train = fitted(name).fitted.train
    plain = scorer.with_popularity(0)(ROWS)
    spread = np.sqrt(plain.astype(np.float64).var(axis=1).mean())
    expected = plain + WEIGHT * spread * np.log1p(train.item_degrees)
    np.testing.assert_allclose(scorer(ROWS), expected, rtol=1e-4, atol=1e-6)


@every_name
def test_a_saved_run_and_its_updates_keep_it(name: str, tmp_path: Path) -> None:
    fitted(name).save(tmp_path / "run")
    again = Recommender.load(tmp_path / "run")
    np.testing.assert_array_equal(again.scorer(ROWS), fitted(name).scorer(ROWS))
    refitted = refit_run(tmp_path / "run", tmp_path / "refitted")
    assert float(refitted.load().popularity) == pytest.approx(WEIGHT)
    news = pl.DataFrame(
        {"user": ["new"], "item": [hamlet().split.train.item_ids.ids[0]], "time": [2_000_000_000]}
    )
    updated, _ = update_run(Run.open(tmp_path / "run"), news, epochs=1)
    assert float(updated.load().popularity) == pytest.approx(WEIGHT)


@every_name
def test_exported_vectors_give_the_scores(name: str, tmp_path: Path) -> None:
    export(fitted(name), tmp_path / "out", ["parquet", "onnx"])
    users, items = (
        pl.read_parquet(tmp_path / "out" / f"{side}.parquet")["vector"].to_numpy()
        for side in ("users", "items")
    )
    expected = fitted(name).scorer(ROWS)
    np.testing.assert_allclose(users @ items.T, expected, rtol=1e-4, atol=1e-5)
    session = onnxruntime.InferenceSession(tmp_path / "out" / "users.onnx")
    (scores,) = session.run(None, {"users": ROWS.astype(np.int64)})
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    if not (tmp_path / "out" / "histories.onnx").exists():
        return
    history = history_matrix([np.array([3, 7, 1])], len(items))
    session = onnxruntime.InferenceSession(tmp_path / "out" / "histories.onnx")
    (scores,) = session.run(None, {"histories": history.toarray()})
    expected = fitted(name).scorer.from_history(history)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


@every_name
def test_reasons_have_it_as_a_term_of_its_own(name: str) -> None:
    split, scorer = hamlet().split, fitted(name).scorer
    user, item = split.train.user_ids.ids[3], split.train.item_ids.ids[5]
    try:
        why = fitted(name).explain(user, item)
    except ConfigError:
        assert not scorer.follows_history
        return
    total = why.own + why.popularity + why.because["contribution"].sum()
    assert total == pytest.approx(why.score, rel=1e-9)
    assert why.score == pytest.approx(float(scorer(np.array([3]))[0, 5]), rel=1e-4, abs=1e-5)
    assert why.popularity == pytest.approx(float(dots(name).bias[5]), rel=1e-6)


@every_name
def test_somebody_new_is_scored_with_it_too(name: str) -> None:
    scorer = dots(name)
    plain, rows = scorer.with_popularity(0), history_matrix([np.array([3, 7, 1])], 30)
    if scorer.follows_history:
        added = scorer.from_history(rows) - plain.from_history(rows)
        np.testing.assert_allclose(added[0], scorer.bias, rtol=1e-3, atol=1e-5)
    assert scorer.bias is not None
    vectors = new_vectors(scorer, rows, steps=3)
    expected = vectors @ scorer.items.T + scorer.bias
    np.testing.assert_allclose(score_new(scorer, rows, steps=3), expected, rtol=1e-5)

"""Asking from Python: what counts as an id, paths as texts, and lists without an item."""

import numpy as np
import polars as pl
import pytest

from ltocf import compare_runs, recommend_all, refit_run, update_run
from ltocf.errors import ConfigError, DataError
from ltocf.recommend.recommender import Recommender

LOG = pl.DataFrame({"user": [0, 0, 1, 1, 2, 2, 3], "item": [5, 6, 5, 7, 6, 7, 5]})


@pytest.mark.parametrize("wrong", [True, None, 1.5, float("inf"), [True], np.bool_(True)])
def test_what_is_no_id_is_one_clear_error(wrong):
    recommender = Recommender("popularity").fit(LOG)
    with pytest.raises(DataError, match="an id is a text or a whole number, got"):
        recommender.recommend(wrong, 1)
    with pytest.raises(DataError, match="an id is a text or a whole number, got"):
        recommender.recommend_new([wrong], 1)


def test_a_recommender_says_what_it_is():
    assert repr(Recommender("popularity")) == "Recommender('popularity'), not fitted"
    fitted = Recommender("popularity").fit(LOG)
    assert repr(fitted) == "Recommender('popularity') of 4 users and 3 items of 'log'"


def test_bad_rows_are_passed_over_where_that_is_asked_for(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n1,a\n2,b\n,c\n1,b\n")
    with pytest.raises(DataError, match="skip_bad=True"):
        Recommender("popularity").fit(tmp_path / "log.csv")
    fitted = Recommender("popularity").fit(tmp_path / "log.csv", skip_bad=True)
    assert len(fitted.fitted.seen) == 3


def test_paths_may_be_texts(hamlet, tmp_path):
    recommender = Recommender("popularity").fit(hamlet)
    run, other = str(tmp_path / "run"), str(tmp_path / "other")
    recommender.save(run)
    assert recommend_all(recommender, str(tmp_path / "lists.csv"), 3).users == 120
    refit_run(run, other)
    Recommender("itemknn").fit(hamlet).save(str(tmp_path / "third"))
    assert compare_runs([run, str(tmp_path / "third")], resamples=10)
    item = hamlet.split.train.item_ids.ids[0]
    news = pl.DataFrame({"user": ["somebody"], "item": [item], "time": [1_900_000_000]})
    update_run(run, news, str(tmp_path / "updated"))
    assert Recommender.load(str(tmp_path / "updated")).unknown_users(["somebody"]) == []


@pytest.mark.parametrize("name", ["gfcf", "ease", "itemknn", "ials"])
def test_a_list_without_an_item_is_that_of_the_history_without_it(name, hamlet):
    recommender = Recommender(name, **({"rank": 8} if name == "gfcf" else {})).fit(hamlet)
    train = hamlet.split.train
    user, history = train.user_ids.ids[3], train.item_ids[train.items_of(3)]
    left = recommender.recommend(user, 5, without=history[1])
    expected = recommender.recommend_new([history[0], *history[2:]], 5)
    assert left["item"].to_list() == expected["item"].to_list()
    np.testing.assert_allclose(left["score"], expected["score"], rtol=1e-4)
    assert recommender.recommend(user, 200, without=history[1])["item"].is_in([history[1]]).any()


def test_the_difference_that_an_item_makes_is_its_term(hamlet):
    """With LT-OCF the sum over the history is divided by the root of its length."""
    recommender = Recommender("ltocf", dim=8, epochs=1, negatives=4).fit(hamlet)
    train = recommender.fitted.train
    user, history = train.user_ids.ids[3], train.item_ids[train.items_of(3)]
    target = recommender.recommend(user, 1)["item"][0]
    why = recommender.explain(user, target)
    rest = why.because.filter(pl.col("item") != history[0])["contribution"].sum()
    n = len(history)
    expected = why.own + why.popularity + rest * np.sqrt(n / (n - 1))
    found = recommender.recommend(user, 200, without=history[0], keep_seen=True)
    score = found.filter(pl.col("item") == target)["score"][0]
    assert score == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_a_model_without_histories_says_that_it_has_no_such_list(hamlet):
    recommender = Recommender("mf", epochs=1, dim=4).fit(hamlet)
    train = hamlet.split.train
    item = train.item_ids[train.items_of(3)][0]
    with pytest.raises(ConfigError, match="do not follow from a history"):
        recommender.recommend(train.user_ids.ids[3], 3, without=item)

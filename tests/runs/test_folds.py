"""Folds by time and at random, and the price of diversity."""

import json

import numpy as np
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import no_split
from ltocf.errors import ConfigError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.folds import cut_folds, evaluate_folds


def log(times=True) -> Dataset:
    """Three users touch four items each, in the order of time."""
    users, items = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    moments = (items * 10 + users) if times else None
    return Dataset("log", no_split(Interactions.build(users, items, 3, 4, moments)))


def pairs(subset):
    return set(zip(subset.users.tolist(), subset.items.tolist(), strict=True))


def test_folds_by_time_by_hand():
    users = np.array([0, 1, 0, 1, 0, 1])
    items = np.array([0, 1, 1, 0, 2, 2])
    moments = np.array([1, 2, 3, 4, 5, 6])
    dataset = Dataset("log", no_split(Interactions.build(users, items, 2, 3, moments)))
    with pytest.raises(ConfigError, match="fold 2 of 2 has nothing"):  # item 2 is new in it
        list(cut_folds(dataset, 2, "time"))
    first = next(cut_folds(dataset, 2, "time")).split
    assert pairs(first.train) == {(0, 0), (1, 1)}
    assert pairs(first.test) == {(0, 1), (1, 0)}


def test_random_folds_test_every_pair_once():
    dataset = log(times=False)
    folds = [fold.split for fold in cut_folds(dataset, 2, "random", seed=1)]
    tested = [pair for fold in folds for pair in pairs(fold.test)]
    assert len(tested) == len(set(tested))
    assert all(not pairs(fold.test) & pairs(fold.train) for fold in folds)


def test_what_cannot_be_cut_is_an_error_that_says_why():
    with pytest.raises(ConfigError, match="need the time"):
        list(cut_folds(log(times=False), 2, "time"))
    with pytest.raises(ConfigError, match="choose one of: time, random"):
        list(cut_folds(log(), 2, "moon"))
    with pytest.raises(ConfigError, match="at least 2"):
        list(cut_folds(log(), 1))


@pytest.fixture(scope="module")
def run(hamlet, tmp_path_factory):
    path = tmp_path_factory.mktemp("folds") / "run"
    Recommender("ease").fit(hamlet).save(path)
    return path


def test_the_shell_shows_folds_and_what_is_beyond_accuracy(ltocf, run, hamlet):
    code, out, _ = ltocf("evaluate", run, "--folds", 2, "--by", "random", "--k", 5, "--json")
    answer = json.loads(out)
    config = Recommender("ease").config
    assert code == 0
    assert answer["folds"] == evaluate_folds(hamlet, config, 2, "random", [5])
    means = [fold["recall@5"] for fold in answer["folds"]]
    assert answer["mean"]["recall@5"] == pytest.approx(np.mean(means))
    code, out, _ = ltocf("evaluate", run, "--folds", 2, "--k", 5)
    assert (code, "deviation" in out) == (0, True)
    code, out, _ = ltocf("evaluate", run)
    assert code == 0
    for name in ("coverage", "gini", "novelty", "popularity", "consumed", "cold", "diversity"):
        assert name in out


def test_the_price_of_diversity_is_shown_beforehand(ltocf, run):
    code, out, _ = ltocf("evaluate", run, "--diversity", "--k", 10, "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["diversity"] for row in rows] == [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    assert rows[0]["ndcg"] > rows[-1]["ndcg"]
    assert rows[0]["intra_list"] < rows[4]["intra_list"] <= rows[-1]["intra_list"]
    code, out, _ = ltocf("evaluate", run, "--diversity")
    assert (code, "price" in out) == (0, True)
    assert ltocf("evaluate", run, "--diversity", "--folds", 2)[0] == 2

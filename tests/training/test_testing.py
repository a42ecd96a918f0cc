"""People who are held out wholly: who they are, what they are known by, and what is to be found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.prepare import prepare
from ltocf.data.ingest.recipe import Recipe
from ltocf.data.interactions import Interactions
from ltocf.data.splits import split_pairs
from ltocf.errors import DataError
from ltocf.recommend.recommender import Recommender
from ltocf.training.protocol import cut_histories, list_lengths, question


def pairs() -> Interactions:
    users, items = np.nonzero(np.random.default_rng(1).random((60, 25)) < 0.3)
    return Interactions.build(users, items, 60, 25)


def test_a_tenth_of_the_people_is_in_test_with_all_they_have() -> None:
    whole = pairs()
    split = split_pairs(whole, "users", seed=2)
    held = np.flatnonzero(split.test.user_degrees)
    assert len(held) == 6
    assert not split.train.user_degrees[held].any()
    assert split.test.user_degrees[held].tolist() == whole.user_degrees[held].tolist()
    assert len(split.train) + len(split.test) == len(whole)
    assert list_lengths(split) == (10, 20, 50, 100)


def test_four_fifths_of_what_they_have_is_known() -> None:
    split = split_pairs(pairs(), "users", seed=2)
    history, wanted = cut_histories(split.test)
    held = split.test.user_degrees > 0
    expected = np.floor(0.8 * split.test.user_degrees[held])
    assert history.user_degrees[held].tolist() == expected.tolist()
    assert len(history) + len(wanted) == len(split.test)
    assert not np.isin(history.keys, wanted.keys).any()


def test_they_are_folded_in_by_that_and_do_not_get_it_again() -> None:
    dataset = Dataset("people", split_pairs(pairs(), "users", seed=2))
    ours = Recommender("ease", l2=5.0).fit(dataset)
    asked = question(ours.scorer, dataset.split)
    user = int(np.flatnonzero(asked.wanted.user_degrees)[0])
    history, _ = cut_histories(dataset.split.test)
    row = np.zeros((1, 25), np.float32)
    row[0, history.items_of(user)] = 1
    expected = ours.scorer.from_history(csr_array(row))
    np.testing.assert_allclose(asked.scorer(np.array([user], np.int32)), expected, rtol=1e-5)
    assert np.isin(history.keys, asked.seen.keys).all()
    assert "ndcg@100" in ours.evaluate()


def test_the_shell_prepares_the_same(tmp_path: Path) -> None:
    whole = pairs()
    log = pl.DataFrame({"user": whole.users, "item": whole.items})
    prepare(log, tmp_path / "data", Recipe(split="users", seed=2))
    split = Dataset.load(tmp_path / "data").split
    assert split.kind == "users"
    assert np.count_nonzero(split.test.user_degrees) == 6
    assert not (split.train.user_degrees[split.test.user_degrees > 0]).any()


def test_it_takes_people_with_five_items() -> None:
    few = Interactions.build(np.arange(4), np.arange(4), 4, 4)
    with pytest.raises(DataError, match="users with 5 interactions or more"):
        split_pairs(few, "users")

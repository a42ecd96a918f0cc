"""Columns of an items table that are called as ours are."""

import polars as pl

from ltocf import export
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.tables import names_apart


def test_a_column_name_that_is_taken_gets_a_suffix_and_so_does_that_one():
    assert names_apart(["name", "score"], {"score"}) == {"name": "name", "score": "item_score"}
    both = names_apart(["score", "item_score"], {"score"})
    assert both == {"score": "item_item_score", "item_score": "item_score"}


def test_items_may_have_columns_called_score_and_item_score():
    log = pl.DataFrame({"user": ["a", "a", "b", "b"], "item": ["x", "y", "x", "z"]})
    items = pl.DataFrame({"item": ["x", "y", "z"], "score": [1, 2, 3], "item_score": [4, 5, 6]})
    found = Recommender("popularity").fit(log, items=items).recommend("a", 1)
    assert found["item"].to_list() == ["z"]
    assert found["item_score"].to_list() == [6] and found["item_item_score"].to_list() == [3]


def test_items_may_have_a_column_called_vector_and_be_exported(tmp_path):
    log = pl.DataFrame({"user": ["a", "a", "b", "b"], "item": ["x", "y", "x", "z"]})
    items = pl.DataFrame({"item": ["x", "y", "z"], "vector": ["p", "q", "r"]})
    export(Recommender("mf", epochs=1, dim=2).fit(log, items=items), tmp_path / "out", ["parquet"])
    exported = pl.read_parquet(tmp_path / "out" / "items.parquet")
    assert exported.columns == ["id", "vector", "item_vector"]
    assert exported["item_vector"].to_list() == ["p", "q", "r"]

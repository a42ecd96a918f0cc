"""Weights of kinds, chosen on the kind that matters."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ltocf.data.ingest.recipe import Reading
from ltocf.errors import ConfigError
from ltocf.search.tuning.kinds import choose_weights, kinds_of


def make_log() -> pl.DataFrame:
    """People buy and put into carts what their group likes, and look at anything."""
    random = np.random.default_rng(4)
    rows = []
    for user in range(150):
        own = 15 * (user % 4) + random.choice(15, 8, replace=False)
        rows += [(f"u{user}", f"i{item}", "purchase") for item in own[:4]]
        rows += [(f"u{user}", f"i{item}", "cart") for item in own[4:]]
        rows += [(f"u{user}", f"i{item}", "view") for item in random.choice(60, 15)]
        rows.append((f"u{user}", f"i{random.integers(60)}", "dislike"))
        rows.append((f"u{user}", f"i{random.integers(60)}", "return"))
    return pl.DataFrame(rows, schema=["user", "item", "kind"], orient="row")


def test_kinds_that_predict_purchases_get_large_weights_and_others_small_ones() -> None:
    found = choose_weights(make_log(), Reading(kind="kind"), "purchase")
    assert found["purchase"] == 5.0
    assert (found["dislike"], found["return"]) == ("hide", -5.0)
    assert float(found["view"]) < float(found["cart"])


def test_the_kinds_of_a_log() -> None:
    expected = ["cart", "dislike", "purchase", "return", "view"]
    assert kinds_of(make_log(), Reading(kind="kind")) == expected


def test_it_needs_a_kind_that_there_is() -> None:
    with pytest.raises(ConfigError, match=r"choose one of: cart, dislike, purchase, return, view"):
        choose_weights(make_log(), Reading(kind="kind"), "sale")
    with pytest.raises(ConfigError, match="needs the column of kinds"):
        choose_weights(make_log(), Reading(), "purchase")

"""Rules by hand-worked lists."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from ltocf.data.attributes import typed_attribute
from ltocf.data.catalogue import Catalogue, ItemChange
from ltocf.data.ids import IdMap
from ltocf.errors import ConfigError
from ltocf.ranking.top_k import Ranked
from ltocf.recommend.rules import Condition, Rules, Shelf
from ltocf.recommend.rules.diversity import rows_of
from ltocf.recommend.rules.impressions import fading, scale_, scaled
from ltocf.recommend.rules.reorder import pool_size, reordered

NOW = datetime(2024, 6, 1)
SHOP = pl.DataFrame(
    {
        "name": ["Oolong", "Assam", "Cup", "Pot", "Mocha", "Sencha"],
        "category": ["tea", "tea", "ware", "ware", "coffee", "tea"],
        "price": [12.0, 8.0, None, 30.0, 20.0, 9.5],
        "tags": ["green|hot", "black|hot", "", "Clay", "vegan", "green"],
        "added": [
            "2024-05-20", "2024-01-01", "2024-05-02", "2023-01-01", "2023-01-01", "2024-06-01"
        ],
        "available": [True, True, True, False, True, None],
        "organic": [True, False, None, False, False, True],
    }
)  # fmt: skip


@pytest.fixture
def shop():
    columns = [typed_attribute(column, from_text=False) for column in SHOP.get_columns()]
    return Shelf(Catalogue(IdMap(list("abcdef")), pl.DataFrame(columns)), NOW)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("category=tea", "abf"),
        ("CATEGORY=TEA", "abf"),
        ("category=tea|coffee", "abef"),
        ("category!=tea", "cde"),
        ("category~of", "e"),
        ("price<12", "bf"),
        ("price<=12", "abf"),
        ("price>12", "de"),
        ("price >= 20", "de"),
        ("price=8", "b"),
        ("price!=8", "acdef"),
        ("tags~green", "af"),
        ("tags~clay", "d"),
        ("tags!~green", "bcde"),
        ("tags=hot|vegan", "abe"),
        ("added>=2024-05-20", "af"),
        ("added<2023-06-01", "de"),
        ("available", "abcef"),
        ("!available", "d"),
        ("organic", "af"),
        ("organic=no", "bde"),
        ("new", "acf"),
        ("!new", "bde"),
        ("Name~o", "ade"),
    ],
)
def test_a_condition_holds_of_exactly_these_items(shop, text, items):
    held = Condition.parse(text).holds(shop)
    assert "".join(np.array(list("abcdef"))[held]) == items
    assert (Condition.parse(str(Condition.parse(text))).holds(shop) == held).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read the condition ''"),
        ("=tea", "cannot read the condition '=tea'"),
        ("price<", "has no value"),
        ("price<cheap", "'cheap' is not a number"),
        ("category<tea", "'category' is a category, which '<' cannot compare"),
        ("price", "'price' is a number, so the condition needs a value"),
        ("colour=red", "no attribute 'colour'; they have: 'name', 'category'"),
        ("__import__('os')=1", "no attribute"),
        ("price=1; drop table", "is not a number"),
    ],
)
def test_what_is_no_condition_is_refused(shop, text, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace("|", r"\|")):
        Condition.parse(text).holds(shop)


@pytest.mark.parametrize(
    "rule",
    [
        {"boost": "new"},
        {"boost": "new:0"},
        {"boost": "new:much"},
        {"at_most": "category"},
        {"at_most": "0:category"},
        {"diversity": 1.5},
        {"by": "colour"},
    ],
)
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(ConfigError):
        Rules.parse(**rule)


def names(rows) -> str:
    return "".join("abcdef"[row] for row in rows if row >= 0)


def listed(scores, k, rules, likeness=None) -> str:
    """The list that the road makes: block, scale, rank a pool, reorder."""
    scores = np.asarray(scores, dtype=np.float32)
    if rules.factors is not None:
        scores = scaled(scores, rules.factors)
    if rules.blocked is not None:
        scores = np.where(rules.blocked, -np.inf, scores).astype(np.float32)
    order = np.argsort(-scores, kind="stable")[: pool_size(rules, k, len(scores))].astype(np.int32)
    order = np.where(scores[order] > -np.inf, order, -1)
    if not rules.rules.reorder:
        return names(order[:k])
    pool = Ranked(order[None], scores[order][None])
    return names(reordered(pool, k, rules, likeness, lambda n: scores).items[0])


SCORES = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, "abce"),  # d is not available
        ({"where": ["!available"]}, "d"),
        ({"where": ["category=tea"]}, "abf"),
        ({"where": ["category=tea", "price<10"]}, "bf"),
        ({"exclude": ["a", "nobody"]}, "bcef"),
        ({"boost": ["category=coffee:2.2"]}, "abec"),
        ({"boost": ["category=coffee:2", "tags~vegan:2"]}, "eabc"),
        ({"boost": ["category=tea:0.1"]}, "ceab"),
        ({"at_most": ["1:category"]}, "ace"),
        ({"at_most": ["2:category"]}, "abce"),
        ({"at_most": ["1:tags"]}, "ace"),
        ({"pin": ["f", "b"]}, "fbac"),
        ({"pin": ["d", "f"]}, "fabc"),  # what is not available is not pinned
        ({"pin": ["f"], "at_most": ["1:category"]}, "fce"),
    ],
)
def test_a_list_by_hand(shop, rules, expected):
    assert listed(SCORES, 4, Rules.parse(**rules).on(shop)) == expected


def test_a_boost_raises_a_negative_score_too(shop):
    rules = Rules.parse(boost="category=coffee:3").on(shop)
    assert listed([-1, -2, -3, -4, -2.5, -6], 3, rules) == "eab"
    assert rules.notes(4) == ["category=coffee:3"]
    assert rules.notes(0) == []


def test_a_list_is_filled_from_beyond_its_pool():
    n = 1000
    kinds = pl.DataFrame({"kind": ["x"] * 500 + ["y"] * 500})
    shelf = Shelf(Catalogue(IdMap.range(n), kinds), NOW)
    rules = Rules.parse(at_most="1:kind").on(shelf)
    scores = -np.arange(n, dtype=np.float32)
    items = np.arange(100, dtype=np.int32)
    found = reordered(Ranked(items[None], scores[items][None]), 3, rules, None, lambda _: scores)
    assert found.items.tolist() == [[0, 500, -1]]


def test_diversity_by_hand(shop):
    """Likeness: b is a's twin, c is a stranger."""
    likeness = np.array([[1, 0], [1, 0], [0, 1], [1, 1], [1, 0], [0, 1]], dtype=np.float32)
    likeness[3] /= np.sqrt(2)
    scores = [10.0, 9.0, 4.0, 3.0, 2.0, 0.0]
    for diversity, expected in ((0.0, "abc"), (0.3, "abc"), (0.5, "acb"), (1.0, "acb")):
        rules = Rules.parse(diversity=diversity).on(shop)
        assert listed(scores, 3, rules, likeness) == expected, diversity


def test_rules_are_remembered_by_the_catalogue_until_it_changes(shop):
    rules = Rules.parse("category=tea")
    assert rules.on(shop) is Rules.parse("category=tea").on(shop)
    changed = Shelf(shop.catalogue.with_changes([ItemChange("e", {"category": "tea"})]), NOW)
    assert rules.on(changed) is not rules.on(shop)
    assert (~rules.on(changed).blocked).tolist() == [True, True, False, False, True, True]


def test_hiding_leaves_no_trace(shop):
    hidden = Shelf(shop.catalogue.with_changes([ItemChange("a", hidden=True)]), NOW)
    assert listed(SCORES, 6, Rules.parse(pin=["a"]).on(hidden)) == "bcef"
    back = Shelf(hidden.catalogue.with_changes([ItemChange("a", hidden=False)]), NOW)
    assert listed(SCORES, 6, Rules().on(back)) == listed(SCORES, 6, Rules().on(shop))


def test_new_without_an_attribute_is_by_the_first_touch(shop):
    touched = np.array(["2024-05-30", "2020-01-01", "NaT"], dtype="datetime64[us]")
    bare = Shelf(Catalogue.of(IdMap(list("abc")), None), NOW, lambda: touched)
    assert Condition.parse("new").holds(bare).tolist() == [True, False, False]
    with pytest.raises(ConfigError, match="it is unknown which items are new"):
        Condition.parse("new").holds(Shelf(bare.catalogue, NOW))


def test_what_was_shown_and_not_taken_halves_with_every_half_life():
    assert fading(np.array([0, 3, 6]), 3.0).tolist() == [1.0, 0.5, 0.25]
    shown = scaled(np.array([8.0, -8.0], dtype=np.float32), fading(np.array([2, 2]), 2.0))
    assert shown.tolist() == [4.0, -16.0]
    with pytest.raises(ConfigError, match="half-life"):
        fading(np.array([1]), 0)


def test_scaling_some_items_of_every_row_is_scaling_each():
    scores = np.array([[4.0, -3.0, 7.0, 2.0], [0.0, -np.inf, 7.0, -2.0]], dtype=np.float32)
    factors = np.array([2.0, 4.0, 1.0, 0.5], dtype=np.float32)
    expected = scaled(scores, factors)
    some = np.array([0, 1, 3], dtype=np.int32)
    scale_(scores, some, factors[some])
    assert scores.tolist() == expected.tolist()
    assert expected.tolist() == [[8.0, -0.75, 7.0, 1.0], [0.0, -np.inf, 7.0, -4.0]]


def test_rows_of_sparse_likeness_have_its_inner_products():
    likeness = csr_array(np.array([[0, 2, 0], [0, 0, 0], [1, 3, 0], [0, 0, 5]], dtype=np.float32))
    items = np.array([2, 0, 1, 2], dtype=np.int32)
    dense = rows_of(likeness, items)
    assert dense.shape == (4, 2)  # nobody of them has the third
    assert (dense @ dense.T).tolist() == (likeness[items] @ likeness[items].T).toarray().tolist()
    assert rows_of(likeness, np.array([1], dtype=np.int32)).shape == (1, 0)

"""A catalogue: typed attributes, tags as a matrix, and changes that keep every row."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest

from ltocf.data.catalogue import Catalogue, ItemChange
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.item_table import add_items, read_items
from ltocf.data.ingest.prepare import Recipe, prepare
from ltocf.data.interactions import IdMap
from ltocf.errors import ConfigError, DataError

SHOP = (
    "item,title,price,code,category,tags,in_stock,added,image\n"
    "a,Oolong,12.5,007,tea,green|hot,yes,2024-01-01,http://x/a.png\n"
    "b,Assam,8,008,tea,black|hot|hot,no,2024-02-01,\n"
    "c,Cup,,009,ware,,yes,,http://x/c.png\n"
    "d,Pot,30,010,ware,clay,,2024-03-01,http://x/d.png\n"
)
LOG = pl.DataFrame({"user": ["u", "u", "v"], "item": ["c", "a", "a"]})


@pytest.fixture
def table(tmp_path):
    (tmp_path / "shop.csv").write_text(SHOP)
    return tmp_path / "shop.csv"


@pytest.fixture
def shop(table):
    found = read_items(table, "item")
    return Catalogue(IdMap(found.ids), found.attributes)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ["a", "b"]),
        ({"year": [1990, 1991], "title": ["Alien", None]}, ["Alien", "b"]),
        ({"genre": ["jazz", "folk"], "album_name": ["Blue Train", "Blue"]}, ["Blue Train", "Blue"]),
        ({"year": [1990, 1991], "genre": ["jazz", "folk"]}, ["jazz", "folk"]),
        ({"image": ["x.png", "y.png"], "genre": ["jazz", "folk"]}, ["jazz", "folk"]),
    ],
)
def test_an_item_is_called_by_the_column_that_names_it(columns, expected):
    catalogue = Catalogue(IdMap(pl.Series("id", ["a", "b"])), pl.DataFrame(columns))
    assert catalogue.names == expected
    assert catalogue.names_of(np.array([1])) == expected[1:]


def test_text_becomes_typed_attributes(shop):
    assert shop.kinds == {
        "title": "text",
        "price": "number",
        "code": "text",
        "category": "category",
        "tags": "tags",
        "in_stock": "flag",
        "added": "time",
        "image": "text",
    }
    assert shop.names == ["Oolong", "Assam", "Cup", "Pot"]
    assert shop.role("picture") == "image"
    assert shop.about(0) == {
        "title": "Oolong",
        "price": 12.5,
        "code": "007",
        "category": "tea",
        "tags": ["green", "hot"],
        "in_stock": True,
        "added": "2024-01-01T00:00:00",
        "image": "http://x/a.png",
    }
    assert "tags" not in shop.about(2)


def test_csv_parquet_json_lines_json_and_frames_are_the_same_catalogue(shop, table, tmp_path):
    typed = shop.table.with_columns(item=shop.ids.ids)
    typed.write_parquet(tmp_path / "shop.parquet")
    plain = typed.with_columns(pl.col("added").dt.to_string("%Y-%m-%dT%H:%M:%S"))
    plain.write_ndjson(tmp_path / "shop.jsonl")
    plain.write_json(tmp_path / "shop.json")
    for source in (
        typed,
        typed.to_pandas(),
        *(tmp_path / f"shop.{s}" for s in ("parquet", "jsonl", "json")),
    ):
        found = read_items(source, "item")
        assert found.ids.to_list() == ["a", "b", "c", "d"]
        again = Catalogue(IdMap(found.ids), found.attributes.select(shop.table.columns))
        assert again.kinds == shop.kinds
        assert [again.about(row) for row in range(4)] == [shop.about(row) for row in range(4)]


def test_a_json_list_in_a_csv_is_a_list_of_tags(tmp_path):
    (tmp_path / "t.csv").write_text('id,tags\n1,"[""a"",""b""]"\n2,"[]"\n')
    assert read_items(tmp_path / "t.csv", "item").attributes["tags"].to_list() == [["a", "b"], []]


def test_a_missing_file_of_json_lines_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_items(tmp_path / "none.jsonl", "item")


def test_available_is_what_is_neither_out_of_stock_nor_hidden_nor_expired(shop):
    assert shop.available().tolist() == [True, False, True, True]
    changed = shop.with_changes(
        [ItemChange("a", hidden=True), ItemChange("c", {"expires": "2024-05-01"})]
    )
    # Its name tells what it is.
    assert changed.available(datetime(2030, 1, 1)).tolist() == [False, False, False, True]
    assert changed.available(datetime(2024, 4, 1)).tolist() == [False, False, True, True]
    timed = Catalogue(
        shop.ids,
        shop.table.with_columns(expires=pl.Series([None, None, datetime(2024, 5, 1), None])),
    )
    assert timed.available(datetime(2024, 4, 30)).tolist() == [True, False, True, True]
    assert timed.available(datetime(2024, 5, 1)).tolist() == [True, False, False, True]


def test_tags_are_a_matrix_of_ones_with_labels(shop):
    matrix, tags = shop.tags()
    assert tags == [
        ("category", "tea"),
        ("category", "ware"),
        ("tags", "black"),
        ("tags", "clay"),
        ("tags", "green"),
        ("tags", "hot"),
    ]
    assert matrix.toarray().astype(int).tolist() == [
        [1, 0, 0, 0, 1, 1],
        [1, 0, 1, 0, 0, 1],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 0, 1, 0, 0],
    ]
    assert shop.tags(["tags"], at_least=2).tags == [("tags", "hot")]
    alike = (shop.attributes @ shop.attributes.T).toarray()
    assert alike[0] == pytest.approx([1, 2 / 3, 0, 0])


def test_a_catalogue_without_attributes_works(shop):
    bare = Catalogue.of(shop.ids, None)
    assert (bare.kinds, bare.names, bare.about(0)) == ({}, ["a", "b", "c", "d"], {})
    assert bare.available().all()
    assert bare.tags().matrix.shape == (4, 0)
    assert bare.with_changes([ItemChange("e", {"price": 3})]).about(4) == {"price": 3}
    with pytest.raises(ConfigError, match="no attribute 'price'"):
        bare.column("price")


def test_changes_put_patch_and_hide_and_leave_the_base_as_it_was(shop):
    changed = shop.with_changes(
        [
            ItemChange("b", {"in_stock": True, "PRICE": "9.5"}),
            ItemChange("e", {"title": "Mug", "tags": ["clay"], "weight": 3}),
            ItemChange("c", {"title": "Bowl"}, whole=True),
            ItemChange("d", hidden=True),
            ItemChange("e", {"price": 4}),
        ]
    )
    assert changed.ids.ids.to_list() == ["a", "b", "c", "d", "e"]
    assert changed.about(0) == shop.about(0)
    assert changed.about(1) == shop.about(1) | {"in_stock": True, "price": 9.5}
    assert changed.about(2) == {"title": "Bowl"}
    assert changed.about(4) == {"title": "Mug", "tags": ["clay"], "price": 4.0, "weight": 3}
    assert changed.available().tolist() == [True, True, True, False, True]
    assert shop.about(2)["title"] == "Cup"
    assert not changed.with_changes([ItemChange("d", {})]).available()[3]
    back = changed.with_changes([ItemChange("d", hidden=False)])
    assert back.available().all()
    assert back.about(3) == shop.about(3)


def test_changes_at_once_are_changes_one_by_one(shop):
    changes = [
        ItemChange("e", {"title": "Mug", "price": 4}),
        ItemChange("a", {"tags": "cold|green"}),
        ItemChange("e", hidden=True),
        ItemChange("a", {"price": None}),
    ]
    at_once, one_by_one = shop.with_changes(changes), shop
    for change in changes:
        one_by_one = one_by_one.with_changes([change])
    assert at_once.table.equals(one_by_one.table)
    assert at_once.available().tolist() == one_by_one.available().tolist()


@pytest.mark.parametrize(
    ("attribute", "value", "kind"),
    [("price", "cheap", "number"), ("in_stock", "maybe", "flag"), ("added", "soon", "time")],
)
def test_a_value_of_another_kind_is_refused(shop, attribute, value, kind):
    with pytest.raises(DataError, match=f"item 'a': {attribute} = '{value}' is not a {kind}"):
        shop.with_changes([ItemChange("a", {attribute: value})])


def test_all_items_of_a_catalogue_are_items_of_the_data_set(table, tmp_path):
    report = prepare(LOG, tmp_path / "data", Recipe(split="none"), names=table)
    data = Dataset.load(tmp_path / "data")
    assert data.split.train.item_ids.ids.to_list() == ["a", "c", "b", "d"]
    assert data.split.train.item_degrees.tolist() == [2, 1, 0, 0]
    assert data.catalogue.names == ["Oolong", "Cup", "Assam", "Pot"]
    assert data.catalogue.kinds["tags"] == "tags"
    assert report.untouched_items == 2
    assert "items of the catalogue that nobody touched yet: 2" in report.lines()


def test_a_second_table_adds_items_and_keeps_attributes_that_it_lacks(table, tmp_path):
    prepare(LOG, tmp_path / "data", Recipe(split="none"), names=table)
    more = pl.DataFrame({"item": ["e", "a"], "price": [1, None], "title": ["Mug", "Blue"]})
    data = add_items(Dataset.load(tmp_path / "data"), more)
    names = dict(zip(data.split.train.item_ids.ids, data.catalogue.names, strict=True))
    assert names == {"a": "Blue", "c": "Cup", "b": "Assam", "d": "Pot", "e": "Mug"}
    assert data.catalogue.about(0)["price"] == 12.5
    assert data.catalogue.about(4) == {"price": 1.0, "title": "Mug"}

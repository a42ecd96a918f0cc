"""ltocf items, ltocf popular"""

import json

import polars as pl
import pytest

from ltocf.data.ingest.item_table import add_items


@pytest.fixture(scope="module")
def data(hamlet, tmp_path_factory):
    path = tmp_path_factory.mktemp("items") / "data"
    new = pl.DataFrame(
        {"item": ["kiosk"], "name": ["Kiosk"], "kind": ["cafe"], "tags": [["late", "small"]]}
    )
    add_items(hamlet, new).save(path)
    return path


def test_items_shows_attributes_and_counts(ltocf, data, hamlet):
    code, out, _ = ltocf("items", data, "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["items"], facts["untouched"]) == (hamlet.split.train.n_items + 1, 1)
    assert facts["attributes"]["kind"]["kind"] == "category"
    assert facts["attributes"]["tags"] == {
        "kind": "tags", "known": 1, "values": 2, "most common": "late, small"
    }  # fmt: skip
    code, out, _ = ltocf("items", data)
    assert (code, "1 of them touched by nobody" in out, "neighbourhood" in out) == (0, True, True)


def test_items_searches_filters_and_counts(ltocf, data, hamlet):
    code, out, _ = ltocf("items", data, "--search", "KIOSK", "--json")
    assert json.loads(out) == {
        "total": 1,
        "items": [
            {
                "item": "kiosk",
                "touches": 0,
                "name": "Kiosk",
                "kind": "cafe",
                "tags": ["late", "small"],
                "neighbourhood": None,
            }
        ],
    }
    kinds = hamlet.item_names["kind"]
    code, out, _ = ltocf("items", data, "--where", f"kind={kinds[0]}", "--json", "-k", 1)
    assert json.loads(out)["total"] == (kinds == kinds[0]).sum()
    code, out, _ = ltocf("items", data, "--count", "kind", "--json")
    counted = {row["kind"]: row["items"] for row in json.loads(out)["items"]}
    assert counted[kinds[1]] == (kinds == kinds[1]).sum()
    assert "no item matches" in ltocf("items", data, "--search", "nothing like it")[1]
    code, out, err = ltocf("items", data, "--where", "colour=red")
    assert (code, "no attribute 'colour'" in err) == (2, True)


def test_numbers_and_times_have_a_range_instead_of_common_values(ltocf, tmp_path, hamlet):
    ids = hamlet.split.train.item_ids.ids[:3]
    prices = {"item": ids, "price": [4.5, None, 20.0], "added": ["2024-01-31", "2024-05-01", None]}
    add_items(hamlet, pl.DataFrame(prices)).save(tmp_path / "priced")
    about = json.loads(ltocf("items", tmp_path / "priced", "--json")[1])["attributes"]
    assert about["price"] == {"kind": "number", "known": 2, "values": 2, "range": "4.5 to 20"}
    assert about["added"]["range"] == "2024-01-31 to 2024-05-01"


def test_popular_lists_the_most_touched(ltocf, data, hamlet):
    code, out, _ = ltocf("popular", data, "-k", 3, "--json")
    assert code == 0
    degrees = sorted(hamlet.split.seen.item_degrees, reverse=True)
    assert [row["touches"] for row in json.loads(out)] == degrees[:3]
    kind = hamlet.item_names["kind"][0]
    code, out, _ = ltocf("popular", data, "--where", f"kind={kind}", "--window", "90d", "--json")
    assert {row["kind"] for row in json.loads(out)} == {kind}
    code, out, _ = ltocf("popular", data, "--new")
    assert (code, "arrived" in out) == (0, True)
    assert ltocf("popular", data, "--trending")[0] == 0


def test_popular_refuses_what_it_cannot_read(ltocf, data, tmp_path):
    assert ltocf("popular", data, "--new", "--trending")[0] == 2
    assert "cannot read the window" in ltocf("popular", data, "--window", "soon")[2]
    code, _, err = ltocf("popular", tmp_path)
    assert (code, "not a prepared data set" in err) == (2, True)

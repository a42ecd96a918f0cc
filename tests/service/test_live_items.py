"""Items that come, change and go while the service runs."""

from __future__ import annotations

import polars as pl
import pytest

from ltocf.data.catalogue import ItemChange
from ltocf.data.ingest.item_table import add_items
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel
from ltocf.service.store.items import change_items, item_changes
from ltocf.service.upkeep.event_update import update_from_events

from .conftest import Client

KINDS = {"a": "tea", "b": "tea", "c": "tea", "d": "cup", "e": "cup", "f": "cup"}
HAVE = {"ann": "ab", "bob": "bc", "cem": "acb", "dia": "de", "eva": "ef", "fay": "dfa", "gus": "bd"}
NEW = {"name": "Matcha", "kind": "tea", "tags": ["green"]}


def shop(*more):
    pairs = [(user, item) for user, items in HAVE.items() for item in items]
    log = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    items = pl.DataFrame(
        {
            "item": [*KINDS, *(item for item, _ in more)],
            "name": [*(f"The {item}" for item in KINDS), *(new["name"] for _, new in more)],
            "kind": [*KINDS.values(), *(new["kind"] for _, new in more)],
            "tags": [["green"] if k == "tea" else ["old", "red"] for k in KINDS.values()]
            + [new["tags"] for _, new in more],
            "available": [True] * (len(KINDS) + len(more)),
        }
    )
    return log, items


def served(model="rp3beta", *more):
    log, items = shop(*more)
    return Recommender(model).fit(log, items=items)


@pytest.fixture
def client(store):
    app = create_app(ServedModel(served()), store)
    yield Client(app)
    app.state.live.close()


def test_an_item_is_shown_as_it_is_now(client):
    assert client.get("/items/tea/with/slashes").status == 404
    client.request("PUT", "/items/tea/with/slashes", NEW)
    found = client.get("/items/tea/with/slashes").json()["item"]
    assert (found["item"], found["name"]) == ("tea/with/slashes", "Matcha")
    assert found["about"] == {"kind": "tea", "tags": ["green"]}
    client.request("PATCH", "/items/a", {"kind": "cup"})
    assert client.get("/items/a").json()["item"]["about"]["kind"] == "cup"


@pytest.mark.parametrize("model", ["rp3beta", "attributes", "itemknn"])
def test_a_new_item_is_in_the_next_list_as_if_it_had_been_trained(model, store):
    app = create_app(ServedModel(served(model)), store)
    client = Client(app)
    assert client.request("PUT", "/items/new", NEW).json() == {"changed": 1}
    trained = served(model, ("new", NEW))
    for user in HAVE:
        table = trained.recommend(user, 7)
        assert client.items(user, k=7) == list(zip(table["item"], table["score"], strict=True))
    assert "new" in dict(client.items("ann", k=3))
    reply = client.get("/users/ann/recommendations?k=7&reasons=true").json()["items"]
    (why,) = [entry["reasons"] for entry in reply if entry["item"] == "new"]
    terms = sum(reason["contribution"] for reason in why["because"])
    assert why["own"] + terms + why["others"] == pytest.approx(why["score"], rel=1e-4)
    app.state.live.close()


def test_what_is_hidden_or_not_available_is_in_no_list(client):
    before = client.items("ann", k=6)
    (first, *_), *_ = before
    for method, body in (("DELETE", None), ("PATCH", {"available": False})):
        assert client.request(method, f"/items/{first}", body).status == 200
        assert client.request("PATCH", f"/items/{first}", {"price": 3}).status == 200
        assert first not in dict(client.items("ann", k=5))
        back = {"item": first, "attributes": {"available": True}, "hidden": False}
        assert client.request("PATCH", "/items", {"items": [back]}).status == 200
        assert client.items("ann", k=6) == before
    expired = client.request("PATCH", f"/items/{first}", {"expires": "2020-01-01"})
    assert expired.status == 200
    assert first not in dict(client.items("ann", k=5))


def test_what_came_and_went_leaves_no_trace(client):
    before = client.items("ann", k=6)
    client.request("PUT", "/items/new", NEW)
    assert client.items("ann", k=6) != before
    assert client.delete("/items/new").status == 200
    assert client.items("ann", k=6) == before
    assert client.delete("/items/new").status == 404
    assert client.delete("/items/never").status == 404


def test_many_at_once_are_all_or_none(client):
    good, bad = {"item": "x", "attributes": NEW}, {"item": "y", "attributes": {"available": "so"}}
    assert client.request("PUT", "/items", {"items": [good, bad]}).status == 409
    assert "x" not in dict(client.items("ann", k=6))
    assert client.request("PUT", "/items", {"items": [good]}).json() == {"changed": 1}
    assert "x" in dict(client.items("ann", k=6))
    gone = {"items": [{"item": "x", "hidden": True}]}
    assert client.request("PATCH", "/items", gone).json() == {"changed": 1}
    assert "x" not in dict(client.items("ann", k=6))


def test_an_event_of_an_unknown_item_counts_once_the_item_is_known(client):
    reply = client.post("/events", {"events": [{"user": "ann", "item": i} for i in ("new", "e")]})
    assert (reply.status, reply.json()["accepted"]) == (201, 2)
    history = client.get("/users/ann/history").json()["items"]
    assert {entry["item"] for entry in history} == {"a", "b", "e"}
    client.request("PUT", "/items/new", NEW)
    history = client.get("/users/ann/history").json()["items"]
    assert {entry["item"] for entry in history} == {"a", "b", "e", "new"}
    assert "new" not in dict(client.items("ann", k=6))


def test_changes_survive_a_restart_and_other_processes_see_them(store):
    first, second = (create_app(ServedModel(served()), store) for _ in range(2))
    Client(first).request("PUT", "/items/new", NEW)
    second.state.live.items.refresh()
    assert Client(second).items("ann", k=6) == Client(first).items("ann", k=6)
    third = create_app(ServedModel(served()), store)
    assert Client(third).items("ann", k=6) == Client(first).items("ann", k=6)
    for app in (first, second, third):
        app.state.live.close()


def test_a_row_holds_what_all_changes_of_an_item_amount_to(store):
    change_items(store, [ItemChange("x", {"a": 1, "b": 2})])
    change_items(store, [ItemChange("y", {"a": 5}, whole=True), ItemChange("x", {"b": 3})])
    change_items(store, [ItemChange("y", {"b": 1}, hidden=True)])
    changes, last = item_changes(store)
    assert changes == [
        ItemChange("x", {"a": 1, "b": 3}, hidden=False),
        ItemChange("y", {"a": 5, "b": 1}, whole=True, hidden=True),
    ]
    assert item_changes(store, last) == ([], last)


def test_an_update_trains_all_of_it_in(store, tmp_path):
    served().save(tmp_path / "run")
    change_items(store, [ItemChange("new", NEW, whole=True), ItemChange("a", hidden=True)])
    store.add([[]])
    app = create_app(ServedModel(served()), store)
    Client(app).post("/events", {"user": "gus", "item": "new"})
    app.state.live.close()
    updated, added, _ = update_from_events(Run.open(tmp_path / "run"), store, checked=0.0)
    catalogue = updated.dataset.catalogue
    assert added.interactions == 1
    assert catalogue.about(int(catalogue.ids.find(["new"])[0]))["tags"] == ["green"]
    assert updated.dataset.split.seen.item_degrees[catalogue.ids.find(["new"])[0]] == 1
    assert not catalogue.available()[catalogue.ids.find(["a"])[0]]


def test_a_recommender_takes_changes_like_a_service():
    _, items = shop(("new", NEW))
    ours = served().with_items([ItemChange("new", NEW)])
    theirs = Recommender("rp3beta").fit(add_items(served().dataset, items.tail(1)))
    shown = ["item", "rank", "score", "name", "tags"]
    assert ours.recommend("ann", 7)[shown].equals(theirs.recommend("ann", 7)[shown])


def test_a_change_of_another_kind_is_refused_and_in_nobodys_way(client):
    assert client.request("PUT", "/items/x", {"size": None}).status == 200
    assert client.request("PATCH", "/items/a", {"size": 3}).status == 200
    before = client.items("ann", k=6)
    for value in (["large"], "large", True):
        for refused in (
            client.request("PATCH", "/items/b", {"size": value}),
            client.request(
                "PUT", "/items", {"items": [{"item": "y", "attributes": {"size": value}}]}
            ),
        ):
            assert refused.status == 409
            assert "'size' has values of different kinds" in refused.json()["detail"]
    assert client.request("PATCH", "/items/b", {}).status == 200
    assert client.items("ann", k=6) == before
    assert client.request("PATCH", "/items/a", {"size": None}).status == 200
    assert client.request("PATCH", "/items/b", {"size": ["large"]}).status == 200


def test_an_item_that_is_put_back_must_suit_what_came_meanwhile(client):
    assert client.request("PUT", "/items/x", {"size": "large"}).status == 200
    assert client.delete("/items/x").status == 200
    assert client.request("PATCH", "/items/a", {"size": 3}).status == 200
    back = {"items": [{"item": "x", "hidden": False}]}
    assert client.request("PATCH", "/items", back).status == 409
    assert client.request("PUT", "/items/x", {"size": 4}).status == 200


def test_stored_changes_that_do_not_suit_each_other_are_passed_over(store, tmp_path):
    sizes = {"a": 1, "b": "large", "x": 2, "c": ["wide"], "y": 3}
    change_items(store, [ItemChange(item, {"size": size}) for item, size in sizes.items()])
    app = create_app(ServedModel(served()), store)
    client = Client(app)
    about = {one["item"]: one["about"] for one in client.get("/items?k=8").json()["items"]}
    assert {item: had["size"] for item, had in about.items() if "size" in had} == {
        "a": 1,
        "x": 2,
        "y": 3,
    }
    assert client.request("PATCH", "/items/d", {"size": 4}).status == 200
    assert client.request("PUT", "/items/b", {"size": 5}).status == 200
    assert client.request("PATCH", "/items/d", {"size": "small"}).status == 409
    app.state.live.close()
    served().save(tmp_path / "run")
    updated, _, _ = update_from_events(Run.open(tmp_path / "run"), store, checked=0.0)
    catalogue = updated.dataset.catalogue
    assert catalogue.about(int(catalogue.ids.find(["b"])[0]))["size"] == 5


def test_an_item_is_hidden_and_shown_again_where_items_have_ids_alone():
    pairs = [(user, item) for user in "uvw" for item in "abcd"[ord(user) % 2 :]]
    log = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    recommender = Recommender("ease").fit(log)
    listed = recommender.recommend_new(["a"], 3)
    hidden = recommender.with_items([ItemChange("b", hidden=True)])
    assert "b" not in hidden.recommend_new(["a"], 3)["item"]
    for one in (recommender, hidden):
        shown = one.with_items([ItemChange("b", hidden=False)])
        assert shown.recommend_new(["a"], 3).equals(listed)

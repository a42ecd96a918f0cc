"""Every route answers, and what is wrong with a request is said in one line with a 4xx."""

import json
from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest

from ltocf.recommend.recommender import Recommender
from ltocf.service.access.guard import Rules
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event

from .conftest import Client


@pytest.fixture
def client(serve):
    return serve("ltocf")


@pytest.fixture
def names(fitted):
    train = fitted("ltocf").dataset.split.train
    return train.user_ids.ids.to_list(), train.item_ids.ids.to_list()


def test_lists_of_many_users_are_their_own_lists(client, names):
    users, _ = names
    reply = client.post("/recommendations", {"users": [*users[:3], "nobody"], "k": 4}).json()
    assert [one["user"] for one in reply["lists"]] == [*users[:3], "nobody"]
    for one in reply["lists"][:3]:
        assert [e["item"] for e in one["items"]] == [i for i, _ in client.items(one["user"], k=4)]
    assert reply["lists"][3]["source"] == "popularity"


@pytest.mark.parametrize("query", ["", "k=4", "k=90", "k=91", "k=999", "k=0", "k=04", "k=4&k=5"])
def test_a_plain_request_is_answered_as_any_other(client, names, query):
    """It is read by a shorter way; an option that changes nothing takes the usual one."""
    for user in (names[0][0], "nobody", "a.b", "x" * 257):
        plain = client.get(f"/users/{user}/recommendations?{query}")
        usual = client.get(f"/users/{user}/recommendations?{query}&keep_seen=false")
        assert (plain.status, plain.json()) == (usual.status, usual.json())


def test_candidates_and_exclusions(client, names):
    _, items = names
    body = {"history": items[:2], "candidates": items[3:9], "exclude": items[3:5], "k": 10}
    (one,) = client.post("/recommendations", body).json()["lists"]
    assert sorted(entry["item"] for entry in one["items"]) == sorted(items[5:9])
    query = "&".join(f"candidates={item}" for item in items[3:9])
    found = client.get(f"/users/{names[0][0]}/recommendations?{query}&keep_seen=true").json()
    assert {entry["item"] for entry in found["items"]} == set(items[3:9])


def test_similar_items_are_those_of_the_library(client, fitted, names):
    _, items = names
    reply = client.get(f"/items/{items[3]}/similar?k=5").json()
    table = fitted("ltocf").similar_items(items[3], 5)
    assert [entry["item"] for entry in reply["items"]] == table["similar"].to_list()
    assert [entry["score"] for entry in reply["items"]] == table["score"].to_list()
    assert reply["item"]["item"] == items[3]


def test_similar_users_are_those_of_the_library(client, fitted, names):
    users, _ = names
    reply = client.get(f"/users/{users[3]}/similar?k=5").json()
    table = fitted("ltocf").similar_users(users[3], 5)
    assert [entry["user"] for entry in reply["users"]] == table["similar"].to_list()


def test_items_are_found_by_name_those_that_begin_with_it_first(client):
    found = client.get("/items?query=LUCKY&k=20").json()["items"]
    assert found and all(entry["name"].startswith("Lucky") for entry in found)
    inside = client.get("/items?query=tea&k=3").json()["items"]
    assert inside and all("tea" in entry["name"].lower() for entry in inside)
    assert client.get("/items?query=no%20such%20place").json()["items"] == []
    assert len(client.get("/items?k=7").json()["items"]) == 7


def test_users_are_found_by_how_they_begin_newcomers_too(client, names):
    users, items = names
    client.post("/events", {"user": "zzz", "item": items[0]})
    assert client.get(f"/users?query={users[4]}").json()["users"][0] == users[4]
    assert client.get("/users?query=zz").json()["users"] == ["zzz"]


def test_a_history_has_the_latest_first_and_its_times(client, fitted, names):
    users, items = names
    train = fitted("ltocf").dataset.split.train
    new = next(row for row in range(train.n_items) if row not in train.items_of(2))
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    written = today.astimezone(timezone(timedelta(hours=2))).isoformat()
    body = {"user": users[2], "item": items[new], "time": written}
    client.post("/events", body)
    history = client.get(f"/users/{users[2]}/history").json()
    first, *rest = history["items"]
    assert (first["item"], first["time"]) == (items[new], today.isoformat())
    assert len(rest) == len(train.items_of(2))
    times = [entry["time"] for entry in history["items"]]
    assert times == sorted(times, reverse=True)


def test_delivered_twice_counts_once(client, names):
    _, items = names
    one = {"user": "ann", "item": items[0], "key": "k1"}
    assert client.post("/events", one).json() == {"accepted": 1, "repeated": 0}
    assert client.post("/events", one).json() == {"accepted": 0, "repeated": 1}
    two = {"events": [{"user": "ann", "item": items[0]}, {"user": "ann", "item": items[1]}]}
    header = {"idempotency-key": "request 7"}
    assert client.post("/events", two, **header).json() == {"accepted": 2, "repeated": 0}
    assert client.post("/events", two, **header).json() == {"accepted": 0, "repeated": 2}


def test_ids_may_hold_anything(client, names):
    _, items = names
    for user in ("a/b", "ö ü", "<script>", "a?b#c", "%2F", "...", "'; drop table events"):
        assert client.post("/events", {"user": user, "item": items[0]}).status == 201
        assert client.items(user, k=1)


def test_integers_and_texts_name_the_same_user(client, names):
    _, items = names
    client.post("/events", {"user": 42, "item": items[0]})
    assert client.get("/users/42/history").json()["items"][0]["item"] == items[0]


@pytest.mark.parametrize("id_", ["a\nb", "a\tb", "\x7f", "\x85", ".", ".."])
def test_ids_that_a_url_or_a_log_cannot_hold_are_refused_at_the_door(client, names, id_):
    for event in ({"user": id_, "item": names[1][0]}, {"user": "ann", "item": id_}):
        reply = client.post("/events", event)
        assert (reply.status, "an id may not" in reply.json()["detail"]) == (422, True)


def test_an_id_with_a_newline_that_was_recorded_before_can_be_read_and_forgotten(client, names):
    client.live.store.add([[Event("a\nb\n", names[1][0], 5)]])
    assert len(client.get("/users/a%0Ab%0A/history").json()["items"]) == 1
    assert client.items("a\nb\n", k=1)
    assert client.delete("/users/a%0Ab%0A").status == 204
    assert client.get("/users/a%0Ab%0A/history").status == 404


def test_whole_numbers_leave_as_texts_and_may_come_as_either(store):
    big = 8657408509986329668
    log = pl.DataFrame({"user": [1, 1, 2, 3, 3], "item": [big, 7, big, 7, 9]})
    app = create_app(ServedModel(Recommender("ease").fit(log)), store)
    client = Client(app)
    found = client.get("/items?k=3").json()["items"]
    assert {entry["item"] for entry in found} == {str(big), "7", "9"}
    assert client.post("/events", {"user": 2, "item": str(big)}).status == 201
    assert client.post("/events", {"user": "2", "item": 7}).status == 201
    assert [e["item"] for e in client.get("/users/2/history").json()["items"]] == ["7", str(big)]
    rounded = client.post("/events", {"user": 2, "item": big})
    assert (rounded.status, "send the id as a string" in rounded.json()["detail"]) == (422, True)
    assert [one["user"] for one in client.get("/users/1/similar?k=2").json()["users"]] == ["2", "3"]
    client.live.close()


@pytest.mark.parametrize(
    "time", ["9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T00:00:00Z", 2**32 + 0.5]
)
def test_times_that_no_clock_of_a_client_shows_are_refused(client, names, time):
    reply = client.post("/events", {"user": "ann", "item": names[1][0], "time": time})
    assert (reply.status, reply.json()["detail"][:5]) == (409, "time:")


def test_messages_show_no_regular_expressions(client):
    for body in ({"user": "a", "item": "x", "key": "\0"}, {"user": "a", "item": "x", "kind": "\0"}):
        detail = client.post("/events", body).json()["detail"]
        assert "NUL" in detail and "^" not in detail
    assert "NUL" in client.get("/items?query=%00").json()["detail"]


BAD = [
    ("POST", "/events", {"user": "a"}, 422, "item"),
    ("POST", "/events", {"user": True, "item": 1}, 422, "user"),
    ("POST", "/events", {"user": "", "item": "x"}, 422, "user"),
    ("POST", "/events", {"user": "a", "item": "x", "time": "yesterday"}, 422, "time"),
    ("POST", "/events", {"user": "a", "item": "x", "colour": "red"}, 422, "colour"),
    ("POST", "/events", {"events": []}, 422, "events"),
    ("POST", "/events", [], 422, "body"),
    ("POST", "/events", b"{", 422, "JSON"),
    ("POST", "/events", b'{"user": "\\ud800", "item": NaN}', 422, "user"),
    ("POST", "/recommendations", {}, 422, "history: Field required"),
    ("POST", "/recommendations", {"users": ["a"], "history": []}, 422, "history"),
    ("POST", "/recommendations", {"history": ["none"]}, 404, "unknown item 'none'"),
    ("POST", "/recommendations", {"users": ["a"], "candidates": ["x"]}, 404, "candidate"),
    ("GET", "/users/a/recommendations?k=0", None, 422, "k"),
    ("GET", "/users/a/recommendations?k=91", None, 422, "k=91 is more than there are (90)"),
    ("GET", "/users/a/recommendations?k=many", None, 422, "k"),
    ("GET", "/users/nobody/history", None, 404, "unknown user 'nobody'"),
    ("GET", "/users/nobody/similar", None, 404, "unknown user 'nobody'"),
    ("DELETE", "/users/nobody", None, 404, "unknown user 'nobody'"),
    ("GET", "/items/none/similar", None, 404, "unknown item 'none'"),
    ("GET", "/explanations?user=a&item=none", None, 404, "unknown item 'none'"),
    ("GET", "/explanations?item=x&user=a&history=b", None, 409, "give either user or history"),
    ("GET", "/nothing", None, 404, "nothing is at this address"),
    ("PUT", "/events", None, 405, "Method Not Allowed"),
]


@pytest.mark.parametrize(("method", "target", "body", "status", "said"), BAD)
def test_what_is_wrong_is_said(client, method, target, body, status, said):
    reply = client.request(method, target, body)
    assert reply.status == status
    assert said in reply.json()["detail"]
    assert "\n" not in reply.json()["detail"]


def test_a_body_may_not_be_too_large_whatever_its_header_says(serve):
    client = serve("ltocf", rules=Rules(body_bytes=1000))
    big = json.dumps({"users": ["x" * 50] * 100}).encode()
    for headers in ({}, {"content-length": "10"}):
        reply = client.request("POST", "/recommendations", big, headers)
        assert (reply.status, "more than 1,000 bytes" in reply.json()["detail"]) == (413, True)


def test_health_readiness_and_metrics(client, names):
    users, items = names
    assert client.get("/health").json() == {"status": "ok"}
    ready = {"status": "ready", "model": "1", "reading": True, "writing": True, "problem": None}
    assert client.get("/ready").json() == ready
    client.items(users[0])
    client.post("/events", {"user": users[0], "item": items[0]})
    text = client.get("/metrics").body.decode()
    assert 'route="/users/{user}/recommendations",status="200"} 1.0' in text
    assert "ltocf_events_total 1.0" in text
    assert 'ltocf_model_info{model="1"} 1.0' in text


def test_diversity_by_attributes_that_no_item_has_is_a_404(serve):
    """As is any other rule that names what items do not have: the request itself is well formed."""
    log = pl.DataFrame({"user": ["ann", "ann", "bob"], "item": ["tea", "jazz", "tea"]})
    client = serve(ServedModel(Recommender("popularity").fit(log)))
    refused = client.get("/users/bob/recommendations?k=1&diversity=0.5&alike_by=attributes")
    assert refused.status == 404
    assert "needs categories or tags" in refused.json()["detail"]
    assert client.get("/users/bob/recommendations?k=1&diversity=0.5&alike_by=vectors").status == 200


def test_the_schema_says_which_texts_no_parameter_takes(client):
    """In old versions of pydantic, too, which took the outer description of a parameter alone."""
    (query, _) = client.get("/openapi.json").json()["paths"]["/users"]["get"]["parameters"]
    assert query["schema"]["pattern"] == r"^[^\x00]*$"
    assert client.get("/users?query=%00").status == 422

"""What a refused request is told: one line that says what was wrong, in the words of the client."""

import pytest

EVENT = {"user": "ann", "item": "tea"}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"user": "", "item": "tea"}, "user: String should have at least 1 character"),
        ({"user": True, "item": "tea"}, "user: should be a text or a whole number"),
        ({"user": 1.5, "item": "tea"}, "user: should be a text or a whole number"),
        ({"user": None, "item": "tea"}, "user: should be a text or a whole number"),
        ({"user": "x" * 300, "item": "tea"}, "user: String should have at most 256 characters"),
        ({"events": [EVENT, {"user": "ann"}]}, "events.1.item: Field required"),
        (EVENT | {"time": True}, "time: should be a date and time or a number"),
        (EVENT | {"time": "2026-11-18T00:00:00"}, "time: Input should have timezone info"),
        (EVENT | {"time": 1_795_000_000_000}, "send seconds since 1970, not milliseconds"),
        (EVENT | {"when": 1}, "when: Extra inputs are not permitted"),
        ([], "body: should be a JSON object"),
    ],
)
def test_an_event_that_is_refused_says_what_would_be_right(serve, body, said):
    reply = serve().post("/events", body, **JSON)
    assert reply.status == 422 and said in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"users": "ann"}, "users: should be a list"),
        ({"users": ["ann", ""]}, "users.1: String should have at least 1 character"),
        ({"users": ["ann"], "k": "3"}, "k: should be a whole number"),
        ({"history": [None]}, "history.0: should be a text or a whole number"),
    ],
)
def test_a_request_for_lists_that_is_refused_does_too(serve, body, said):
    assert serve().post("/recommendations", body, **JSON).json()["detail"] == said


@pytest.mark.parametrize("value", [{"a": 1}, ["x", None]])
def test_an_attribute_names_every_kind_that_it_may_be(serve, value):
    reply = serve().request("PUT", "/items/new", {"price": value}, JSON)
    assert reply.status == 422 and reply.json()["detail"].startswith("price")
    assert "constrained" not in reply.json()["detail"] and "str" not in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        (b'{"user": "ann"}', "text/plain", 422, "body: needs the header 'content-type: "),
        (b'{"user": ', "application/json", 422, "body: is not valid JSON"),
        (b'"\xff"', "application/json", 400, "body: cannot be read as JSON in UTF-8"),
    ],
)
def test_a_body_that_cannot_be_read_says_why(serve, body, kind, status, said):
    reply = serve().request("POST", "/events", body, {"content-type": kind})
    assert reply.status == status and reply.json()["detail"].startswith(said)


def test_an_unknown_address_says_where_the_known_ones_are(serve):
    assert "/openapi.json" in serve().get("/nothing").json()["detail"]

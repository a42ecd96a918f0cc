"""What was shown: counted, honest, faded and forgotten."""

from __future__ import annotations

import pytest

from ltocf.service.store.impressions import Impression, ShownQuality


def test_what_was_shown_is_counted_until_it_is_taken(serve):
    client = serve("ease")
    (first, _), (second, _), *_ = client.items("0", k=5)
    assert client.post("/impressions", {"user": "0", "items": [first, second]}).status == 201
    client.post("/impressions", {"user": "0", "items": [first]})
    store = client.live.store
    assert store.shown_in_vain(["0", "1"]) == {"0": {first: 2, second: 1}}
    client.post("/events", {"user": "0", "item": first})
    assert store.shown_in_vain(["0"]) == {"0": {second: 1}}
    version = client.live.served.version
    assert store.shown_qualities() == [ShownQuality(version, 2, 1)]
    assert client.get("/operations").json()["shown"] == [{"model": version, "shown": 2, "taken": 1}]


def test_an_event_may_tell_what_was_shown_with_it(serve):
    client = serve("ease")
    (first, _), (second, _), *_ = client.items("0", k=5)
    event = {"user": "0", "item": first, "shown": [first, second], "key": "once"}
    assert client.post("/events", event).json() == {"accepted": 1, "repeated": 0}
    assert client.post("/events", event).json() == {"accepted": 0, "repeated": 1}
    assert client.live.store.shown_in_vain(["0"]) == {"0": {second: 1}}
    assert [tuple(line[1:]) for line in client.live.store.shown_qualities()] == [(2, 1)]


def test_whoever_is_forgotten_was_shown_nothing(serve):
    client = serve("ease")
    client.live.store.shown("1", [Impression("0", "x"), Impression("1", "x")])
    assert client.delete("/users/0").status == 204
    assert client.live.store.shown_in_vain(["0", "1"]) == {"1": {"x": 1}}


def test_what_is_shown_in_vain_counts_half_after_so_many_times(serve):
    client = serve("ease", fade_after=4.0)
    client.post("/events", {"user": "zoe", "item": client.items("zoe", k=1)[0][0]})
    before = dict(client.items("zoe", k=10))
    first = next(iter(before))
    assert before[first] > 0
    for _ in range(4):
        client.post("/impressions", {"user": "zoe", "items": [first]})
    after = dict(client.items("zoe", k=30))
    assert after[first] == pytest.approx(before[first] / 2, rel=1e-5)
    others = [item for item in before if item != first]
    assert [after[item] for item in others] == [before[item] for item in others]
    client.post("/impressions", {"user": "zoe", "items": [first] * 4})
    assert dict(client.items("zoe", k=40))[first] == pytest.approx(before[first] / 4, rel=1e-5)

"""The feed, taking an event back, and versions over HTTP."""

import pytest

from ltocf.service.store.events import Event
from ltocf.service.store.recent import events_by_hour, events_since, latest_events
from ltocf.service.store.updates import latest_updates, record_update

HOUR = 3_600_000_000


def test_the_feed_has_the_latest_events_and_lists_first(serve):
    client = serve()
    item = client.live.served.item_ids[0]
    client.post("/events", {"events": [{"user": u, "item": item} for u in ("ann", "bob")]})
    client.get("/users/bob/recommendations?k=2")
    found = client.get("/feed?k=5").json()
    assert [event["user"] for event in found["events"]] == ["bob", "ann"]
    assert found["lists"][0]["user"] == "bob" and len(found["lists"][0]["items"]) == 2


def test_the_feed_forgets_whoever_asked_for_it(serve):
    client = serve()
    client.post("/events", {"user": "ann", "item": client.live.served.item_ids[0]})
    client.get("/users/ann/recommendations?k=2")
    client.delete("/users/ann")
    found = client.get("/feed").json()
    assert found == {"events": [], "lists": []}


def test_the_feed_of_another_process_forgets_them_too(serve):
    first, second = serve(), serve()
    first.post("/events", {"user": "ann", "item": first.live.served.item_ids[0]})
    for user in ("ann", "bob"):
        second.get(f"/users/{user}/recommendations?k=2")
    first.delete("/users/ann")
    second.live.monitor._look()
    assert [one["user"] for one in second.get("/feed").json()["lists"]] == ["bob"]


def test_an_event_that_is_taken_back_never_was(serve):
    client = serve()
    one, other = client.live.served.item_ids[:2]
    client.post("/events", {"user": "ann", "item": one})
    before = client.items("ann")
    client.post("/events", {"user": "ann", "item": other, "key": "a/b"})
    assert client.items("ann") != before
    assert client.delete("/events/a/b").json() == {"removed": 1}
    assert client.items("ann") == before
    assert client.delete("/events/a/b").status == 404


def test_events_are_counted_by_hour(store):
    store.add(
        [[Event("a", "x", 5 * HOUR), Event("a", "y", 5 * HOUR + 1), Event("b", "x", 7 * HOUR)]]
    )
    assert events_by_hour(store, since_hour=0) == {5: 2, 7: 1}
    assert events_by_hour(store, since_hour=6) == {7: 1}
    assert events_since(store, 6 * HOUR) == 1
    assert [event.item for event in latest_events(store, 2)] == ["x", "y"]


def test_what_became_of_updates_is_kept_the_latest_first(store):
    record_update(store, "refused", events=10, old_hit_rate=0.5, new_hit_rate=0.25)
    record_update(store, "used", version="2")
    last, first = latest_updates(store, 5)
    assert (last.outcome, last.version, last.events) == ("used", "2", 0)
    assert (first.outcome, first.new_hit_rate) == ("refused", 0.25)


@pytest.mark.parametrize("change", ["rollback", "promote"])
def test_without_a_run_there_is_one_version_only(serve, change):
    reply = serve().post(f"/versions/{change}", {})
    assert reply.status == 409 and "one version" in reply.json()["detail"]

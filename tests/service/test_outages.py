"""With the store down the lights stay on: lists are marked stale, and what is wrong is said."""

import os
import shutil
import threading
import time

import pytest
from sqlalchemy.exc import OperationalError

from ltocf.service.access.guard import Rules
from ltocf.service.store.monitor import StoreMonitor


def fail(*arguments, **options):
    raise OperationalError("SELECT", {}, Exception("gone"))


@pytest.fixture
def client(serve):
    return serve("ltocf")


@pytest.fixture
def names(fitted):
    train = fitted("ltocf").dataset.split.train
    return train.user_ids.ids.to_list(), train.item_ids.ids.to_list()


def take_down(client, monkeypatch, *methods):
    for method in methods or ("of_users", "last", "add", "qualities", "forgotten", "try_to_write"):
        monkeypatch.setattr(client.live.store, method, fail)


def test_known_users_get_the_models_list_marked_stale(client, names, fitted, monkeypatch, caplog):
    (user, *_), (item, *_) = names
    with monkeypatch.context() as broken:
        take_down(client, broken)
        reply = client.get(f"/users/{user}/recommendations?k=5")
        assert (reply.status, reply.json()["stale"]) == (200, True)
        expected = fitted("ltocf").recommend(user, 5)["item"].to_list()
        assert [entry["item"] for entry in reply.json()["items"]] == expected
        stranger = client.get("/users/stranger/recommendations").json()
        assert (stranger["stale"], stranger["source"]) == (True, "popularity")
        many = client.post("/recommendations", {"users": [user, "stranger"]}).json()
        assert [one["stale"] for one in many["lists"]] == [True, True]
        event = client.post("/events", {"user": user, "item": item})
        assert (event.status, event.headers["retry-after"]) == (503, "1")
    assert "event store: reading fails: gone" in caplog.text
    client.live.monitor._look()
    assert "stale" not in client.get(f"/users/{user}/recommendations").json()
    assert "reading works again" in caplog.text


def test_somebody_who_was_forgotten_stays_so_while_the_store_is_down(client, names, monkeypatch):
    user = names[0][0]
    client.delete(f"/users/{user}")
    client.live.monitor._look()
    take_down(client, monkeypatch)
    assert client.get(f"/users/{user}/recommendations").json()["source"] == "popularity"


def test_whoever_watches_is_told_and_never_waits(client, monkeypatch):
    take_down(client, monkeypatch)
    client.live.monitor._look()
    assert client.get("/health").status == 200
    ready = client.get("/ready")
    assert (ready.status, ready.headers["retry-after"]) == (503, "1")
    assert ready.json()["problem"] == "reading the store of events fails: gone"
    assert b"ltocf_store_reading 0.0" in client.get("/metrics").body
    assert client.get("/model").status == 200


def test_whoever_may_not_read_is_not_told_where_the_store_is(serve, monkeypatch):
    client = serve("ltocf", rules=Rules(token="secret", read_needs_token=True))
    take_down(client, monkeypatch)
    client.live.monitor._look()
    assert client.get("/ready").json()["problem"] == "the store of events fails; the log says why"


def test_reading_and_writing_are_told_apart(client, names, monkeypatch):
    with monkeypatch.context() as broken:
        take_down(client, broken, "add", "try_to_write")
        assert client.post("/events", {"user": "ann", "item": names[1][0]}).status == 503
        ready = client.get("/ready")
        about = ready.json()
        assert (ready.status, about["reading"], about["writing"]) == (503, True, False)
        assert client.get("/ready?for=reading").status == 200
        assert "stale" not in client.get("/users/ann/recommendations").json()
    client.live.monitor._look()
    assert client.get("/ready").json()["writing"]


def test_a_store_that_says_nothing_counts_as_gone(store, monkeypatch):
    monitor = StoreMonitor(store)
    assert monitor.reading
    monitor._read_at -= 3600
    assert (monitor.reading, monitor.problem()) == (False, "the store of events does not answer")
    monitor.close()


def test_a_list_does_not_wait_for_a_store_that_hangs(serve, names, monkeypatch):
    client = serve("ltocf", timeout_seconds=0.2)
    monkeypatch.setattr(client.live.store, "of_users", lambda *a, **k: time.sleep(3) or {})  # type: ignore[func-returns-value]
    reply = client.get(f"/users/{names[0][0]}/recommendations")
    assert (reply.status, reply.json()["stale"]) == (200, True)


def test_events_are_not_taken_once_their_file_was_removed(client, names, tmp_path):
    user, item = names[0][0], names[1][0]
    aside = tmp_path / "aside"
    aside.mkdir()
    for path in tmp_path.glob("events.db*"):
        shutil.move(path, aside / path.name)
    assert client.post("/events", {"user": user, "item": item}).status == 503
    client.live.monitor._look()
    assert "was removed" in client.get("/ready").json()["problem"]
    for path in aside.iterdir():
        os.replace(path, tmp_path / path.name)
    client.live.monitor._look()
    assert client.post("/events", {"user": user, "item": item}).status == 201
    assert client.get("/ready").status == 200


def test_the_monitor_holds_no_connection_once_it_is_closed(store, monkeypatch):
    """Found by 3,000 random steps: the store was closed during a look, whose connection leaked."""
    monkeypatch.setattr("ltocf.service.store.monitor.LOOK_SECONDS", 0.01)
    looking, last = threading.Event(), store.last

    def slow_last():
        looking.set()
        time.sleep(0.3)
        return last()

    monitor = StoreMonitor(store)
    monkeypatch.setattr(store, "last", slow_last)
    assert looking.wait(5)
    monitor.close()
    assert not monitor._thread.is_alive()

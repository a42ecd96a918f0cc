"""Any sequence of events, repetitions, forgetting, updates, rollbacks, restarts and lost disks, on
SQLite and PostgreSQL, against a dict of histories.

Whatever happened, every list is that of the joined history, every acknowledged event is there once,
and nobody who was forgotten is in any file of the run. LTOCF_STEPS=3000 asks for so many steps.
"""

import os
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ltocf.errors import DataError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.versions import in_use, rollback
from ltocf.service.server import Settings, make_app
from ltocf.service.store.events import EventStore
from ltocf.service.upkeep.backup import back_up, restore
from ltocf.service.upkeep.chores import load_served
from ltocf.service.upkeep.event_update import update_from_events

from .conftest import Client
from .test_forgetting import files_with

STEPS = int(os.environ.get("LTOCF_STEPS", "40"))
EACH = 20  # steps of one sequence
SECONDS = 300  # however busy the machine is, no list is late or stale
ITEMS = [f"item-{n}" for n in range(12)]
KNOWN = [f"known-person-{n}" for n in range(4)]
NEW = [f"new-person-{n}" for n in range(2)]
HISTORIES = {user: ITEMS[2 * n : 2 * n + 5] for n, user in enumerate(KNOWN)}
# Somebody who is never asked about, so that there is always something left to learn from.
LOG = HISTORIES | {"everybody": ITEMS}

EXTRA = [f"extra-{n}" for n in range(3)]  # that come while it runs
people, things = st.sampled_from(KNOWN + NEW), st.sampled_from(ITEMS)


class Service(RuleBasedStateMachine):
    """`histories` is what should be."""

    where: str | None = None  # of PostgreSQL

    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="ltocf-states"))
        self.run = self.directory / "run"
        pairs = [(user, item) for user, items in LOG.items() for item in items]
        log = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
        Recommender("ease").fit(log).save(self.run)
        self.histories = {user: list(items) for user, items in HISTORIES.items()}
        self.keys, self.acknowledged, self.forgotten = {}, [], set()
        self.put, self.hidden = set(), set()
        self.store_url = self.where and new_database(self.where)
        self.client = None

    @initialize()
    def start(self):
        self.open()

    def open(self):
        settings = Settings(run=self.run, events=self.store_url, timeout_seconds=SECONDS)
        self.client = Client(make_app(settings))

    def close(self):
        self.client.live.close()
        self.client.live.store.close()

    def teardown(self):
        if self.client is not None:
            self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    @rule(user=people, item=things, named=st.booleans())
    def post(self, user, item, named):
        key = f"key {uuid4()}" if named else None
        event = {"user": user, "item": item} | ({"key": key} if named else {})
        assert self.client.post("/events", event).json() == {"accepted": 1, "repeated": 0}
        self.histories.setdefault(user, []).append(item)
        self.acknowledged.append((user, item))
        self.forgotten.discard(user)
        if named:
            self.keys[key] = event

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def post_again(self, data):
        event = self.keys[data.draw(st.sampled_from(sorted(self.keys)))]
        assert self.client.post("/events", event).json() == {"accepted": 0, "repeated": 1}

    @rule(item=st.sampled_from(EXTRA), kind=st.sampled_from(["tea", "cup"]))
    def put_item(self, item, kind):
        reply = self.client.request("PUT", f"/items/{item}", {"kind": kind})
        assert reply.json() == {"changed": 1}
        self.put.add(item)
        self.hidden.discard(item)

    @rule(item=st.sampled_from(EXTRA + ITEMS), hidden=st.booleans())
    def hide_item(self, item, hidden):
        if item in EXTRA and item not in self.put:
            return
        body = {"items": [{"item": item, "hidden": hidden}]}
        assert self.client.request("PATCH", "/items", body).json() == {"changed": 1}
        (self.hidden.add if hidden else self.hidden.discard)(item)

    @rule(user=people)
    def forget(self, user):
        reply = self.client.delete(f"/users/{user}")
        known = bool(self.histories.get(user))
        assert reply.status == (204 if known else 404)
        self.histories.pop(user, None)
        self.acknowledged = [pair for pair in self.acknowledged if pair[0] != user]
        if known:
            self.forgotten.add(user)

    @rule(checked=st.sampled_from([0.0, 0.5]))
    def update(self, checked):
        store = EventStore.open(
            self.client.live.store.engine.url.render_as_string(False)
            if self.store_url
            else self.run / "events.db"
        )
        try:
            update_from_events(Run.open(self.run), store, checked=checked)
        except DataError as nothing:
            assert "has no new events" in str(nothing)
        finally:
            store.close()
        for user in self.forgotten:
            assert files_with(self.run, user) == []
        self.swap()

    @precondition(lambda self: in_use(self.run).previous is not None)
    @rule()
    def roll_back(self):
        rollback(self.run)
        self.swap()

    def swap(self):
        self.client.live.swap(load_served(self.run, self.client.live.store))

    @rule()
    def restart(self):
        self.close()
        self.open()

    @rule()
    def lose_the_disk(self):
        """And restore what was backed up just before, events into another store."""
        saved = self.directory / "backup.tar.gz"
        back_up(self.run, self.client.live.store, saved)
        self.close()
        shutil.rmtree(self.run)
        self.store_url = self.where and new_database(self.where)
        restore(saved, self.run, self.store_url)
        self.open()

    @invariant()
    def every_list_is_that_of_the_joined_history(self):
        if self.client is None:
            return
        recommender = self.client.live.served.recommender
        for user in KNOWN + NEW:
            answer = self.client.get(f"/users/{user}/recommendations?k=5")
            assert answer.status == 200, answer.json()
            reply = answer.json()
            found = {entry["item"]: entry["score"] for entry in reply["items"]}
            history = list(dict.fromkeys(self.histories.get(user, ())))
            if not history:
                assert reply["source"] == "popularity"
                continue
            # Of items whose scores differ by rounding alone, either may be the last one listed.
            table = recommender.recommend_new(history, len(ITEMS) + len(EXTRA))
            scores = dict(zip(table["item"], table["score"], strict=True))
            assert found == pytest.approx({item: scores[item] for item in found}, abs=1e-5)
            assert list(found.values()) == pytest.approx(list(scores.values())[:5], abs=1e-5)

    @invariant()
    def what_is_on_the_shelf_and_nothing_else_can_be_listed(self):
        if self.client is None:
            return
        reply = self.client.post("/recommendations", {"history": [ITEMS[0]], "k": 12}).json()
        listed = {entry["item"] for entry in reply["lists"][0]["items"]}
        expected = (set(ITEMS[1:]) | self.put) - self.hidden
        assert listed <= expected
        assert len(listed) == min(12, len(expected))

    @invariant()
    def every_acknowledged_event_is_there_once(self):
        if self.client is None:
            return
        stored = [(e.user, e.item) for e in self.client.live.store.since(0) if e.item is not None]
        assert sorted(stored) == sorted(self.acknowledged)


def new_database(server):
    import psycopg

    name = f"states_{uuid4().hex[:12]}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_no_sequence_of_what_can_happen_breaks_a_promise(kind, request, monkeypatch):
    monkeypatch.setattr("ltocf.service.engine.STORE_SECONDS", SECONDS)
    url = request.getfixturevalue("postgres_server") if kind == "postgresql" else None
    machine = type("Machine", (Service,), {"where": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(1, STEPS // EACH),
            stateful_step_count=EACH,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

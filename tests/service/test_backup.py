"""Losing the disk: what comes back from a backup; and pruning, after which nothing is different."""

import shutil

import pytest

from ltocf.errors import DataError, RunError
from ltocf.runs.run import Run
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel
from ltocf.service.server import load_served  # type: ignore[attr-defined]
from ltocf.service.store.events import Event, EventStore
from ltocf.service.upkeep.backup import back_up, prune_learned, restore
from ltocf.service.upkeep.event_update import update_from_events

from .conftest import Client


@pytest.fixture
def run(fitted, tmp_path):
    path = tmp_path / "disk" / "run"
    path.parent.mkdir()
    fitted("ease").save(path)
    return path


def events_of(run, users=6):
    items = [str(item) for item in Run.open(run).dataset.split.train.item_ids.ids[:5]]
    return [
        Event(f"new-{u}", i, 10**15 + n, None, f"{u}/{i}")
        for u in range(users)
        for n, i in enumerate(items)
    ]


def lists(run, where):
    """What everybody gets from this run and store."""
    store = EventStore.open(where)
    app = create_app(load_served(run, store), store)
    found = [Client(app).items(f"new-{n}", k=5) for n in range(6)]
    app.state.live.close()
    store.close()
    return found


def test_a_lost_disk_comes_back_with_every_event_and_every_list(run, tmp_path, ltocf):
    store = EventStore.open(run / "events.db")
    store.add([events_of(run)])
    update_from_events(Run.open(run), store)
    store.add([[Event("late", events_of(run)[0].item, 10**15)]])
    store.forget("new-0")
    before, last = lists(run, run / "events.db"), store.last()
    code, out, _ = ltocf("backup", run, "-o", tmp_path / "backup.tar.gz")
    assert code == 0 and "saved" in out
    store.close()
    shutil.rmtree(tmp_path / "disk")
    code, out, _ = ltocf("restore", tmp_path / "backup.tar.gz", "-o", run)
    assert code == 0 and "restored" in out
    again = EventStore.open(run / "events.db")
    assert (again.id, again.last()) == (store.id, last)
    assert again.add([events_of(run)]) == [[]]  # keys are still spent, also of the forgotten
    again.close()
    assert lists(run, run / "events.db") == before


def test_events_can_go_to_another_kind_of_store(run, tmp_path):
    store = EventStore.open(run / "events.db")
    store.add([events_of(run)])
    back_up(run, store, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "there", str(tmp_path / "elsewhere.db"))
    moved = EventStore.open(tmp_path / "elsewhere.db")
    assert moved.since(0) == store.since(0)
    moved.close()
    store.close()


def test_nothing_is_overwritten_and_a_damaged_backup_is_refused(run, tmp_path):
    store = EventStore.open(run / "events.db")
    store.add([events_of(run)])
    backup = tmp_path / "backup"
    back_up(run, store, backup)
    with pytest.raises(RunError, match="already exists"):
        restore(backup, run, None)
    with pytest.raises(DataError, match="already has events"):
        restore(backup, tmp_path / "there", str(run / "events.db"))
    store.close()
    backup.write_bytes(backup.read_bytes()[:-200])
    (tmp_path / "other").write_text("no archive")
    with pytest.raises(DataError, match="cannot be read as a backup") as refused:
        restore(tmp_path / "other", tmp_path / "there", None)
    assert "\n" not in str(refused.value)
    with pytest.raises(DataError, match="there is no such backup"):
        restore(tmp_path / "missing", tmp_path / "there", None)
    with pytest.raises(DataError, match="cannot be read as a backup"):
        restore(backup, tmp_path / "there", None)
    assert not (tmp_path / "there").exists()
    assert [p.name for p in tmp_path.iterdir() if "restoring" in p.name] == []


def test_pruning_removes_what_all_versions_learned_and_changes_no_list(run, ltocf):
    store = EventStore.open(run / "events.db")
    store.add([events_of(run)])
    assert prune_learned(run, store) == 0
    update_from_events(Run.open(run), store)
    assert prune_learned(run, store) == 0  # a rollback would need them
    store.add([events_of(run, users=7)])
    update_from_events(Run.open(run), store)
    before, last = lists(run, run / "events.db"), store.last()
    code, out, _ = ltocf("prune", run)
    assert code == 0 and "removed 24 events" in out
    assert store.last() == last and store.add([events_of(run)]) == [[]]
    store.close()
    assert lists(run, run / "events.db") == before


def test_an_event_that_was_taken_back_does_not_come_back(serve):
    client = serve()
    event = {"user": "ann", "item": client.live.served.item_ids[0], "key": "k"}
    client.post("/events", event)
    last = client.live.store.last()
    client.delete("/events/k")
    assert client.live.store.last() == last
    assert client.post("/events", event).json() == {"accepted": 0, "repeated": 1}
    assert isinstance(client.live.served, ServedModel)

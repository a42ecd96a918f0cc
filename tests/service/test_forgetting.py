"""Somebody who asked to be forgotten is nowhere: no file, no page of a table, no answer."""

from pathlib import Path

import polars as pl
import pytest

from ltocf.errors import RunError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.versions import in_use, rollback
from ltocf.service.server import Settings, make_app
from ltocf.service.store.events import Event, EventStore
from ltocf.service.upkeep.event_update import update_from_events

from .conftest import Client

MARK = "remember-me-not"  # so odd that no file has it by chance
START = 1_700_000_000_000_000


def files_with(directory, text=MARK):
    """Every file below that holds the text."""
    found = []
    for path in directory.rglob("*"):
        if path.is_file() and text.encode() in path.read_bytes():
            found.append(str(path.relative_to(directory)))
        if path.suffix == ".parquet" and text in str(
            pl.read_parquet(path).to_dict(as_series=False)
        ):
            found.append(str(path.relative_to(directory)))
    return found


@pytest.fixture
def log(hamlet):
    """The small town's pairs, and a person with a name that is easily searched for."""
    train = hamlet.split.train
    frame = pl.DataFrame(
        {
            "user": train.user_ids.ids[train.users],
            "item": train.item_ids.ids[train.items],
            "time": 1_600_000_000 + train.users.astype("int64"),
        }
    )
    theirs = pl.DataFrame(
        {"user": [MARK] * 5, "item": train.item_ids.ids[:5], "time": [1_600_000_000] * 5}
    )
    return pl.concat([frame, theirs])


@pytest.fixture
def run(log, tmp_path):
    Recommender("ease").fit(log).save(tmp_path / "run")
    assert files_with(tmp_path) != []
    return tmp_path / "run"


@pytest.fixture
def client(run):
    client = Client(make_app(Settings(run=run)))
    yield client
    client.live.close()
    client.live.store.close()


def items_of(log, count=8):
    return log["item"].unique(maintain_order=True).to_list()[5 : 5 + count]


def test_before_the_next_update_no_answer_names_them(client, log):
    like = log["user"][0]
    assert client.get(f"/users?query={MARK}").json()["users"] == [MARK]
    assert client.delete(f"/users/{MARK}").status == 204
    assert client.get(f"/users?query={MARK}").json()["users"] == []
    everybody = len(log["user"].unique())
    others = client.get(f"/users/{like}/similar?k={everybody}").json()["users"]
    assert MARK not in [one["user"] for one in others]
    assert [one["rank"] for one in others] == list(range(1, len(others) + 1))
    assert client.get(f"/users/{MARK}/history").status == 404
    assert client.delete(f"/users/{MARK}").status == 404
    assert client.get(f"/users/{MARK}/recommendations").json()["source"] == "popularity"


def test_after_an_update_no_file_holds_them_the_first_version_included(client, run, log, tmp_path):
    client.post("/events", {"user": MARK, "item": items_of(log)[0], "key": f"{MARK} 1"})
    client.post("/events", {"user": "somebody", "item": items_of(log)[1]})
    client.delete(f"/users/{MARK}")
    updated, _, _ = update_from_events(Run.open(run), client.live.store, checked=0)
    assert files_with(tmp_path) == []
    assert (run / "config.toml").is_file() and not (run / "data").exists()
    assert in_use(run).previous is None or in_use(run).previous > 1
    assert "somebody" in updated.dataset.split.train.user_ids.ids.to_list()
    assert Recommender.load(run).recommend("somebody", 3).height == 3


def test_an_update_from_a_log_forgets_too_and_does_not_bring_them_back(
    client, run, log, tmp_path, ltocf
):
    client.delete(f"/users/{MARK}")
    more = pl.DataFrame(
        {"user": ["new", MARK], "item": items_of(log, 2), "time": [1_700_000_000] * 2}
    )
    (tmp_path / "logs").mkdir()
    more.write_csv(tmp_path / "logs" / "more.csv")
    code, _, err = ltocf("update", run, tmp_path / "logs" / "more.csv")
    assert code == 0, err
    assert files_with(tmp_path) == ["logs/more.csv"]
    assert "new" in Run.open(run).dataset.split.train.user_ids.ids.to_list()


def test_an_update_that_is_refused_still_forgets(client, run, log, tmp_path, monkeypatch):
    client.post("/events", {"user": "somebody", "item": items_of(log)[1]})
    client.delete(f"/users/{MARK}")
    monkeypatch.setattr("ltocf.service.upkeep.event_update.compare", refuse)
    with pytest.raises(RunError, match="worse"):
        update_from_events(Run.open(run), client.live.store)
    assert files_with(tmp_path) == []
    with pytest.raises(RunError, match="no earlier version"):
        rollback(run)


def refuse(*arguments):
    from ltocf.service.upkeep.event_update import Check

    return Check(1, 1.0, 0.0, 1.0, 0.0), True


def test_a_redelivered_event_does_not_bring_them_back_but_a_new_one_does(client, log):
    (item, other) = items_of(log, 2)
    event = {"user": MARK, "item": item, "key": "k1"}
    assert client.post("/events", event).json()["accepted"] == 1
    client.delete(f"/users/{MARK}")
    assert client.post("/events", event).json() == {"accepted": 0, "repeated": 1}
    assert client.get(f"/users/{MARK}/history").status == 404
    client.post("/events", {"user": MARK, "item": other})
    found = client.get(f"/users/{MARK}/history").json()
    assert (found["known"], [entry["item"] for entry in found["items"]]) == (False, [other])


def test_whoever_has_events_can_be_forgotten_though_the_model_knows_nothing_of_them(client, log):
    """As after a rollback: the events count as learned, but the data have nobody of that name."""
    served = client.live.served
    client.post("/events", {"user": "somebody", "item": items_of(log)[0]})
    object.__setattr__(served, "trained", 10)
    assert client.get("/users/somebody/history").status == 404
    assert client.delete("/users/somebody").status == 204
    assert not client.live.store.has("somebody")


def test_a_deletion_that_was_given_up_is_not_carried_out_later(client, log):
    client.post("/events", {"user": "somebody", "item": items_of(log)[0]})
    client.live._seconds = 0.0  # over before it began
    assert client.delete("/users/somebody").status == 503
    assert client.live.store.has("somebody")


def test_nothing_of_them_is_left_in_the_pages_of_postgresql(postgres, postgres_server):
    import psycopg

    store = EventStore.open(postgres)
    marks = [f"{MARK}-{n}" for n in range(20)]
    store.add([[Event(mark, "tea", START, None, f"key {mark}") for mark in marks]])
    store.add([[Event("ann", "tea", START)]])
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("ANALYZE")
    for mark in marks:
        store.forget(mark)
    store.rewrite()
    assert store.add([[Event(marks[0], "tea", START, None, f"key {marks[0]}")]]) == [[]]
    store.close()
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        (where,) = connection.execute("SHOW data_directory").fetchone()
        connection.execute("CHECKPOINT")
    assert files_with(Path(where) / "base") == []

"""What was acknowledged is there, once; SQLite and PostgreSQL agree."""

import threading

import pytest
from sqlalchemy.exc import SQLAlchemyError

from ltocf.errors import ConfigError, DataError
from ltocf.service.store.events import Event, EventStore, Quality


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "events.db"
    return request.getfixturevalue("postgres")


@pytest.fixture
def store(where):
    opened = EventStore.open(where)
    yield opened
    opened.close()


def test_events_are_numbered_in_the_order_of_their_commits(store):
    first, second = store.add([[Event("ann", "tea", 5)], [Event("bob", "jazz", 3, "click", "k")]])
    assert [first[0].number, second[0].number] == [1, 2]
    assert store.of_users(["ann", "bob", "cem"]) == {"ann": first, "bob": second}
    assert store.since(1) == second
    assert store.last() == 2


def test_the_same_key_counts_once_also_within_a_batch(store):
    again = Event("ann", "tea", 5, key="one")
    assert [len(added) for added in store.add([[again, again], [again]])] == [1, 0]
    assert store.add([[again], [Event("ann", "tea", 5)]])[0] == []
    assert [event.number for event in store.since(0)] == [1, 2]


def test_what_was_committed_is_there_for_the_next_process(store, where):
    store.add([[Event("ann", "tea", 5)]])
    other = EventStore.open(where)
    assert other.id == store.id
    assert [event.item for event in other.of_users(["ann"])["ann"]] == ["tea"]
    other.close()


def test_events_after_a_number(store):
    store.add([[Event("ann", item, 0) for item in "abcd"]])
    assert [event.item for event in store.of_users(["ann"], after=2)["ann"]] == ["c", "d"]
    assert [event.item for event in store.since(3)] == ["d"]


def test_many_users_at_once(store):
    store.add([[Event(f"u{n}", "tea", n) for n in range(1200)]])
    found = store.of_users([f"u{n}" for n in range(1200)])
    assert [found[f"u{n}"][0].time for n in range(1200)] == list(range(1200))


def test_of_a_forgotten_person_nothing_but_a_marker_is_left(store):
    store.add([[Event("ann", "tea", 5), Event("bob", "tea", 6), Event("ann", "jazz", 7)]])
    store.forget("ann")
    (left,) = store.of_users(["ann"])["ann"]
    assert (left.item, left.number) == (None, 4)
    first, mark = store.since(0)
    assert first.user == "bob" and "ann" not in mark.user
    assert store.forgotten_among(["bob", "ann"], store.forgotten()) == ["ann"]
    assert store.forgotten(after=4) == frozenset()
    assert store.item_counts(0) == {"tea": 1}
    assert store.search_users("", 5) == ["bob"]
    ((after,),) = store.add([[Event("ann", "chess", 8)]])
    assert after.number == 5


def test_numbers_are_never_given_twice(store):
    store.add([[Event("ann", "tea", 5)]])
    store.forget("ann")
    store.forget("ann")
    ((event,),) = store.add([[Event("bob", "tea", 5)]])
    assert event.number == 4


def test_a_removed_event_is_not_left_in_the_files_of_sqlite(tmp_path):
    store = EventStore.open(tmp_path / "events.db")
    store.add([[Event("somebody", "a rather peculiar item", 5)]])
    store.forget("somebody")
    assert all(b"peculiar" not in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


def test_items_are_counted_by_people(store):
    store.add([[Event("ann", "tea", 1), Event("ann", "tea", 2), Event("bob", "tea", 3)]])
    assert store.item_counts(0) == {"tea": 2}
    assert store.item_counts(2) == {"tea": 1}


def test_users_are_found_by_how_they_begin(store):
    store.add([[Event(user, "tea", 1) for user in ("ann", "anton", "bob", "a%c")]])
    assert store.search_users("an", 5) == ["ann", "anton"]
    assert store.search_users("a%", 5) == ["a%c"]


def test_qualities_of_an_hour_add_up(store):
    store.record([Quality("1", 7, 10, 3, 2.5), Quality("2", 7, 1, 1, 1.0)])
    store.record([Quality("1", 7, 2, 1, 0.5)])
    assert store.qualities() == [Quality("1", 7, 12, 4, 3.0), Quality("2", 7, 1, 1, 1.0)]


def test_writers_at_the_same_time_neither_lose_nor_repeat(store):
    def write(name):
        for n in range(20):
            store.add([[Event(name, "tea", n), Event(name, "tea", n, key=f"shared {n}")]])

    threads = [threading.Thread(target=write, args=(f"u{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = store.since(0)
    assert [event.number for event in events] == list(range(1, 101))
    assert sum(event.key is None for event in events) == 80


def test_stores_that_cannot_be_opened(tmp_path):
    with pytest.raises(DataError, match="does not exist; create it"):
        EventStore.open(tmp_path / "none" / "events.db")
    (tmp_path / "text").write_text("this is no database, but long enough to be looked at" * 50)
    with pytest.raises(DataError, match=r"cannot open the event store .*text.*not a database"):
        EventStore.open(tmp_path / "text")
    with pytest.raises(ConfigError, match=r"mysql://ann:\*\*\*@there/x: unknown kind"):
        EventStore.open("mysql://ann:secret@there/x")
    with pytest.raises(DataError, match=r"postgresql://ann:\*\*\*@127.0.0.1:1/x"):
        EventStore.open("postgresql://ann:secret@127.0.0.1:1/x")


def test_of_a_long_history_the_latest_events_are_read(store):
    events = [Event("ann", f"item {n}", 1_700_000_000_000_000 + n) for n in range(12)]
    store.add([events, [Event("bob", "tea", 1)]])
    found = store.of_users(["ann", "bob", "cem"], most=5)
    assert [event.item for event in found["ann"]] == [f"item {n}" for n in range(7, 12)]
    assert {user: len(theirs) for user, theirs in found.items()} == {"ann": 5, "bob": 1}


def test_a_failed_read_is_reported_as_every_failure_of_the_store_and_the_next_one_works(store):
    store.add([[Event("ann", "tea", 1)]])
    with store.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE events RENAME TO gone")
        with pytest.raises(SQLAlchemyError, match=r"no such table|does not exist"):
            store.of_users(["ann"])
        connection.exec_driver_sql("ALTER TABLE gone RENAME TO events")
    assert [event.item for event in store.of_users(["ann"])["ann"]] == ["tea"]

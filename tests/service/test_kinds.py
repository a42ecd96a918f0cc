"""Kinds of events: what is sent back leaves the history, what is hidden is never listed."""

from dataclasses import replace

import pytest

from ltocf.errors import ConfigError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.service.boards import Boards
from ltocf.service.live_quality import ranks_before
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event, EventStore
from ltocf.service.upkeep.event_update import update_from_events


def post(client, user, item, kind=None):
    reply = client.post("/events", {"user": user, "item": item, "kind": kind})
    assert reply.status == 201, reply.body


@pytest.mark.parametrize("name", ["ltocf", "ease", "blend"])
def test_what_is_sent_back_leaves_the_history_and_is_not_listed(serve, name):
    client = serve(name)
    first, second, returned = client.live.served.item_ids[:3]
    for user in ("ann", "bob"):
        post(client, user, first, "purchase")
        post(client, user, second, "purchase")
    post(client, "ann", returned, "purchase")
    post(client, "ann", returned, "return")
    expected = [entry for entry in client.items("bob", k=12) if entry[0] != str(returned)]
    assert client.items("ann", k=len(expected)) == expected


def test_what_is_hidden_vanishes_and_changes_nothing_else(serve):
    client = serve("ease")
    user = client.live.served.seen.user_ids.ids[0]
    before = client.items(user, k=10)
    hidden = before[2][0]
    post(client, user, hidden, "not-for-me")
    assert client.items(user, k=9) == [entry for entry in before if entry[0] != hidden]


def test_an_old_like_can_be_sent_back(serve):
    client = serve("ease")
    served = client.live.served
    user, old = served.seen.user_ids.ids[0], served.item_ids[served.seen.items_of(0)[0]]
    without = [entry for entry in client.items(user, k=10, without=old) if entry[0] != str(old)]
    post(client, user, old, "return")
    assert client.items(user, k=len(without)) == without


def test_mf_lists_go_on_after_a_return(serve):
    client = serve("mf")
    served = client.live.served
    user, old = served.seen.user_ids.ids[0], served.item_ids[served.seen.items_of(0)[0]]
    before = client.items(user, k=5)
    post(client, user, old, "return")
    assert client.items(user, k=5) == before


def test_the_table_of_the_data_set_comes_before_names(fitted):
    recommender = fitted("ease")
    options = {"options": {"weigh": {"view": 0.0, "remove": 2.0, "buy": 5.0}}}
    dataset = replace(recommender.dataset, origin=dict(recommender.dataset.origin) | options)
    served = ServedModel(Recommender.wrap(recommender.model, dataset, recommender.config))
    ids = served.item_ids
    events = [Event("ann", ids[0], 1, "view"), Event("ann", ids[1], 2, "remove")]
    person = served.person("ann", events)
    assert person.items.tolist() == [1] and not len(person.met)


def test_what_is_hidden_is_no_success_of_a_list(serve):
    client = serve("ease")
    served, store = client.live.served, client.live.store
    user = served.seen.user_ids.ids[0]
    best = client.items(user, k=1)[0][0]
    for number, kind in enumerate(["view", "dislike"], start=1):
        (rank,) = ranks_before(served, store, [Event(user, best, 1, kind, None, number)])
        assert rank == (1 if kind == "view" else 0)


def test_an_update_trains_the_kinds_in(fitted, store, tmp_path):
    fitted("ease").save(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    train = run.dataset.split.train
    user, items = train.user_ids.ids[0], train.item_ids.ids
    owned = train.items_of(0)
    new = next(
        row for row in range(train.n_items) if row not in run.dataset.split.known.items_of(0)
    )
    news = [
        Event(user, items[int(owned[0])], 1_900_000_000_000_000, "return"),
        Event(user, items[int(owned[1])], 1_900_000_001_000_000, "dislike"),
        Event(user, items[new], 1_900_000_002_000_000, "purchase"),
    ]
    store.add([news])
    updated, _, _ = update_from_events(run, store, checked=0)
    split = updated.dataset.split
    assert set(split.train.items_of(0)) == {*owned[2:], new}
    assert int(owned[1]) in split.known.items_of(0)


def test_the_table_of_the_service_comes_before_that_of_the_data_and_lasts(fitted, store, tmp_path):
    fitted("ease").save(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    train = run.dataset.split.train
    user, owned = train.user_ids.ids[0], train.items_of(0)
    store.weigh_by("look=0,return=2,spoiled=-1")
    again = EventStore(store.engine, store.name)
    kinds = ServedModel.of_run(run, "1", again).kinds
    assert kinds == {"look": 0.0, "return": 2.0, "spoiled": -1.0}
    moment = 1_900_000_000_000_000
    events = [
        Event(user, train.item_ids.ids[int(owned[0])], moment, "return"),
        Event(user, train.item_ids.ids[int(owned[1])], moment, "spoiled"),
    ]
    again.add([events])
    updated, _, _ = update_from_events(run, again, checked=0)
    assert set(updated.dataset.split.train.items_of(0)) == {int(owned[0]), *owned[2:]}


def test_a_table_that_says_nothing_is_refused(store):
    with pytest.raises(ConfigError, match="gives no kind a weight above 0"):
        store.weigh_by("return=-1")
    assert store.weigh is None


def test_what_is_sent_back_or_hidden_makes_nothing_popular(serve):
    client = serve("ease")
    live, (liked, hidden) = client.live, client.live.served.item_ids[:2]
    before = live.popularity.of(live.served).copy()
    boards = Boards(live.store)
    touches = len(boards._touches(live.served)[0].items)
    post(client, "ann", liked, "view")
    post(client, "ann", hidden, "dislike")
    post(client, "bob", hidden, "return")
    live.popularity.count(live.served)
    more = live.popularity.of(live.served) - before
    assert (more[0], more[1], more.sum()) == (1, 0, 1)
    assert len(Boards(live.store)._touches(live.served)[0].items) == touches + 1


def test_a_like_after_a_dislike_counts_once(store):
    store.add([[Event("ann", "tea", 1, "dislike"), Event("ann", "tea", 2, "view")]])
    first = store.last() - 1
    assert store.item_counts(0) == {"tea": 1}
    assert store.item_counts(0, since=first) == {"tea": 1}
    assert store.item_counts(0, since=first, kinds={"dislike": 1.0}) == {}

"""The loop closes: events are learned, checked, swapped in, and can be rolled back."""

import json
import time

import numpy as np
import polars as pl
import pytest

from ltocf.data.ingest.growth import Growth
from ltocf.errors import DataError, RunError
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.update import update_run
from ltocf.runs.versions import in_use, rollback
from ltocf.service.live_quality import summarise
from ltocf.service.served_model import LEARNED, ServedModel
from ltocf.service.server import Settings, make_app
from ltocf.service.store.events import Event
from ltocf.service.upkeep.chores import load_served
from ltocf.service.upkeep.event_update import compare, update_from_events

from .conftest import Client

START = 1_900_000_000_000_000


def events_of(dataset, users=20, each=4):
    """What people will do next: their test pairs, and a newcomer who follows one of them."""
    test, ids = dataset.split.test, dataset.split.train.item_ids.ids
    found, n = [], 0
    for user in range(users):
        for item in test.items_of(user)[:each]:
            name = test.user_ids.ids[user]
            found.append(Event(name, ids[int(item)], START + n * 1_000_000))
            n += 1
    rows = dataset.split.train.items_of(0)[:3]
    return found + [Event("newcomer", ids[int(row)], START + 10**9) for row in rows]


@pytest.fixture
def run(fitted, tmp_path):
    fitted("ltocf").save(tmp_path / "run")
    return Run.open(tmp_path / "run")


@pytest.mark.parametrize("name", ["ltocf", "lightgcn", "chebycf", "ease", "blend"])
def test_a_list_after_the_update_is_that_of_the_offline_update(name, fitted, store, tmp_path):
    fitted(name).save(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    events = events_of(run.dataset)
    store.add([events])
    log = pl.DataFrame(
        {
            "user": [event.user for event in events],
            "item": [event.item for event in events],
            "time": [event.time // 1_000_000 for event in events],
        }
    )
    offline, added = update_run(run, log, tmp_path / "offline")
    updated, learned, check = update_from_events(run, store, checked=0)
    assert (learned, check) == (added, None)
    users = [events[0].user, "newcomer"]
    for path in (updated.path, tmp_path / "run"):
        ours = Recommender.load(path).recommend(users, 10)
        assert ours.equals(Recommender.load(offline.path).recommend(users, 10))


@pytest.mark.parametrize("name", ["mf", "cmn", "ngcf", "neumf"])
def test_a_newcomer_among_the_judged_does_not_stop_a_model_that_has_no_lists_for_them(
    name, fitted, store, tmp_path
):
    fitted(name).save(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    gone = run.dataset.split.train.user_ids.ids[30]
    store.add([events_of(run.dataset)])  # the newcomer's come last
    store.forget(gone)
    updated, added, check = update_from_events(run, store, checked=0.2)
    assert added.interactions > 0
    assert check is not None and check.events > 0
    assert gone not in updated.dataset.split.known.user_ids.ids.to_list()
    last, _, _ = update_from_events(updated, store, checked=0)
    assert Recommender.load(last.path).recommend("newcomer", 5).height == 5


def test_the_latest_events_are_kept_for_the_check_and_learned_the_next_time(run, store):
    store.add([events_of(run.dataset)])
    last = store.last()
    updated, added, check = update_from_events(run, store)
    assert 0 < check.events <= last // 5
    learned = updated.dataset.origin[LEARNED][store.id]
    assert added.interactions + added.repeated == learned == last - last // 5
    again, rest, _ = update_from_events(Run.open(updated.path.parent.parent), store, checked=0)
    assert rest.interactions + rest.repeated == last // 5
    assert again.dataset.origin[LEARNED][store.id] == last
    with pytest.raises(DataError, match="has no new events since the run was last updated"):
        update_from_events(Run.open(updated.path.parent.parent), store)


def test_who_was_forgotten_leaves_the_data_and_the_others_keep_their_vectors(run, store):
    train, weight = run.dataset.split.train, run.load().weight
    gone = train.user_ids.ids[3]
    store.add([[Event("newcomer", train.item_ids.ids[0], START)]])
    store.forget(gone)
    updated, _, _ = update_from_events(run, store, checked=0, epochs=0)
    after = updated.dataset.split
    assert gone not in after.train.user_ids.ids.to_list()
    assert len(after.train) == len(train) - len(train.items_of(3)) + 1
    assert len(after.test) == len(run.dataset.split.test) - len(run.dataset.split.test.items_of(3))
    kept = np.delete(weight.detach().numpy(), 3, axis=0)
    ours = updated.load().weight.detach().numpy()
    np.testing.assert_array_equal(ours[:119], kept[:119])
    np.testing.assert_array_equal(ours[120:], kept[119:])
    assert not ours[119].any()


def test_a_model_that_is_clearly_worse_is_not_taken(run, store, monkeypatch):
    store.add([events_of(run.dataset, users=100)])

    def spoil(*arguments, **options):
        model = run.load()
        model.weight.data.neg_()
        model.weight.data[: model.graph.n_users].neg_()  # what they like least comes first
        return model

    monkeypatch.setattr("ltocf.service.upkeep.event_update.warm_start", spoil)
    monkeypatch.setattr(
        "ltocf.service.upkeep.event_update._with_events", lambda data, _, __: (data, ADDED)
    )
    with pytest.raises(RunError, match="the updated model is worse on the latest"):
        update_from_events(run, store)
    assert in_use(run.path).current == 1
    assert not list((run.path / "versions").glob("*/config.toml"))


ADDED = Growth(1, 0, 0, 0)


def test_the_same_model_is_not_worse_than_itself(run, store):
    events = events_of(run.dataset)
    (numbered,) = store.add([events])
    served = ServedModel.of_run(run, "1", store)
    check, worse = compare(served, served, store, numbered)
    assert not worse
    assert check.old_mrr == check.new_mrr
    assert compare(served, served, store, []) is None


def test_rollback_returns_to_the_old_model_and_back(run, store, ltocf):
    root, user = run.path, run.dataset.split.train.user_ids.ids[0]
    store.add([events_of(run.dataset)])
    before = Recommender.load(root).recommend(user, 5)
    update_from_events(run, store)
    after = Recommender.load(root).recommend(user, 5)
    assert not after.equals(before)
    code, out, _ = ltocf("rollback", root)
    assert (code, out) == (0, f"{root} is at version 1 again; version 2 is kept\n")
    assert Recommender.load(root).recommend(user, 5).equals(before)
    assert rollback(root).current == 2
    assert Recommender.load(root).recommend(user, 5).equals(after)


def test_nothing_to_roll_back_to(run, ltocf):
    code, _, err = ltocf("rollback", run.path)
    assert (code, err) == (2, f"error: {run.path}: has no earlier version to return to\n")


def test_only_the_last_two_versions_are_kept(run, store):
    items = run.dataset.split.train.item_ids.ids
    for n in range(3):
        store.add([[Event(f"newcomer {n}", items[0], START)]])
        update_from_events(Run.open(run.path), store, checked=0, epochs=0)
    assert sorted(path.name for path in (run.path / "versions").iterdir()) == ["3", "4"]
    assert in_use(run.path) == (4, 3, None)


def test_retraining_does_not_remove_events(run, ltocf):
    (run.path / "events.db").write_text("promised")
    code, _, err = ltocf("train", "town", "-o", run.path, "--overwrite", "epochs=1")
    assert code == 2 and "holds the events of its service" in err
    assert (run.path / "events.db").read_text() == "promised"


def test_the_command_line_updates_from_the_runs_own_events(run, ltocf):
    app = make_app(Settings(run=run.path))
    client = Client(app)
    for event in events_of(run.dataset, users=5):
        client.post("/events", {"user": event.user, "item": event.item})
    client.live.close()
    code, out, err = ltocf("update", run.path, "--json")
    assert code == 0, err
    assert json.loads(out)["added"]["users"] <= 1
    assert json.loads(out)["run"].endswith("versions/2")
    served = json.loads(ltocf("serve", run.path, "--get", "/ready")[1])
    assert (served["status"], served["model"]) == ("ready", "2")
    assert ltocf("update", run.path, "--check", 0)[0] == 0
    code, _, err = ltocf("update", run.path)
    assert code == 2 and "has no new events since the run was last updated" in err


def test_without_a_log_and_events_an_update_asks_for_them(run, ltocf):
    code, _, err = ltocf("update", run.path)
    assert code == 2 and err.startswith("error: say what to add: a log, or --events STORE")


def test_a_running_service_follows_the_versions_of_its_run(run, store):
    app = make_app(Settings(run=run.path, events=store.name))
    client = Client(app)
    store.add([events_of(run.dataset)])
    update_from_events(run, store)
    deadline = time.monotonic() + 300
    while client.get("/ready").json()["model"] != "2":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    expected = load_served(run.path, store)
    assert client.live.served.trained == expected.trained
    user = run.dataset.split.train.user_ids.ids[60]  # has no events
    table = expected.recommender.recommend(user, 10)
    assert client.items(user) == list(zip(table["item"], table["score"], strict=True))
    client.live.close()


def test_the_rank_just_before_an_event_is_that_of_the_list(run, store, serve, fitted):
    client = serve("ltocf")
    train = fitted("ltocf").dataset.split.train
    user = train.user_ids.ids[0]
    before = [item for item, _ in client.items(user, k=80)]
    for place in (4, 30):  # the 5th of the list; then the 30th of the one after
        listed = [item for item, _ in client.items(user, k=60)]
        client.post("/events", {"user": user, "item": listed[place], "time": 7200})
    client.post("/events", {"user": user, "item": before[4], "time": 7200})  # has it
    client.post("/events", {"user": "stranger", "item": before[4], "time": 7200})  # unknown
    assert client.live.judge.wait(30)
    (line,) = store.qualities()
    # By arrival: what the clients say of the time is theirs.
    assert abs(line.hour - time.time() // 3600) <= 1
    assert (line.model, line.events, line.hits) == ("1", 2, 1)
    assert line.reciprocal == pytest.approx(1 / 5 + 1 / 31)
    deadline = time.monotonic() + 30  # the monitor looks once a second, so that nobody has to wait
    while 'ltocf_online_hit_rate_at_20{model="1"}' not in client.get("/metrics").body.decode():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    text = client.get("/metrics").body.decode()
    assert 'ltocf_online_hit_rate_at_20{model="1"} 0.5' in text
    assert 'ltocf_online_events{model="1"} 2.0' in text
    online = client.get("/model").json()["online"]
    assert online == [line._asdict()]


def test_the_quality_of_an_hour_counts_what_was_ranked():
    (line,) = summarise("m", 7, np.array([1, 40, 0, 2]))
    assert (line.model, line.hour, line.events, line.hits) == ("m", 7, 3, 2)
    assert line.reciprocal == 1 + 1 / 40 + 1 / 2
    assert summarise("m", 7, np.array([0, 0])) == []


def test_an_unexpected_failure_does_not_end_the_judging(serve, store, fitted, monkeypatch, caplog):
    client = serve("ltocf")
    user = fitted("ltocf").dataset.split.train.user_ids.ids[0]
    first, second = (item for item, _ in client.items(user, k=2))
    with monkeypatch.context() as broken:
        broken.setattr("ltocf.service.live_quality.ranks_before", lambda *_: 1 / 0)
        client.post("/events", {"user": user, "item": first})
        assert client.live.judge.wait(30)
    assert client.live.judge.passed_over == 1
    assert "ZeroDivisionError" in caplog.text
    client.post("/events", {"user": user, "item": second})
    assert client.live.judge.wait(30)
    assert [line.events for line in store.qualities()] == [1]

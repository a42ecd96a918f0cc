"""Two versions behind one service: who sees which, what is logged, and what is found."""

import pytest

from ltocf.errors import ConfigError
from ltocf.service.experiments.arms import Arm, Split, parse_split
from ltocf.service.experiments.ledger import arm_counts
from ltocf.service.experiments.report import report_of
from ltocf.service.experiments.running import Experiment
from ltocf.service.served_model import ServedModel

HALVES = Split((Arm("A", "current", 0.5), Arm("B", "candidate", 0.5)))


def test_arms_are_read_from_one_line():
    split = parse_split("A=current:0.9, B=candidate:0.1")
    assert split.arms == (Arm("A", "current", 0.9), Arm("B", "candidate", 0.1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A=current:1", "cannot read"),
        ("A=current:0.5,A=candidate:0.5", "different names"),
        ("A=current:0.5,B=candidate:0.4", "add up to 0.9"),
        ("A=current:0.5,B=best:0.5", "unknown version 'best'"),
        ("A", "unknown version"),
        ("A=current:x,B=2:0.5", "cannot read"),
    ],
)
def test_an_experiment_that_cannot_be_meant_is_refused(text, why):
    with pytest.raises(ConfigError, match=why):
        parse_split(text)


def test_people_keep_their_arm_and_arms_get_their_shares():
    users = [f"user-{n}" for n in range(4000)]
    split = parse_split("A=current:0.9,B=candidate:0.1")
    arms = [split.arm_of(user).name for user in users]
    assert arms == [split.arm_of(user).name for user in users]
    assert arms.count("B") / len(arms) == pytest.approx(0.1, abs=0.02)
    more = parse_split("A=current:0.8,B=candidate:0.2")
    stayed = [user for user, arm in zip(users, arms, strict=True) if arm == "B"]
    assert all(more.arm_of(user).name == "B" for user in stayed)


@pytest.fixture
def trial(serve, fitted, store):
    """A service of two versions, half of the people each."""
    client = serve("ltocf")
    candidate = ServedModel(fitted("ease"), "2")
    client.live.experiment = Experiment(store, {"candidate": candidate}, split=HALVES)
    return client


def one_of(arm):
    return next(u for u in (f"new-{n}" for n in range(100)) if HALVES.arm_of(u).name == arm)


def settled(client):
    assert client.live.judge.wait(20) and client.live.experiment.wait(20)
    return {arm["name"]: arm for arm in client.get("/operations").json()["experiment"]["arms"]}


def test_each_arm_is_answered_by_its_version(trial):
    first, second = one_of("A"), one_of("B")
    for user, version, arm in ((first, "1", "A"), (second, "2", "B")):
        found = trial.get(f"/users/{user}/recommendations?k=3").json()
        assert (found["model"], found["arm"]) == (version, arm)
    lists = trial.post("/recommendations", {"users": [second, first, second], "k": 2}).json()[
        "lists"
    ]
    assert [one["arm"] for one in lists] == ["B", "A", "B"]
    assert [one["user"] for one in lists] == [second, first, second]


def test_exposures_hits_and_conversions_are_counted_once_a_person(trial):
    user, item = one_of("B"), trial.live.served.item_ids
    trial.post("/events", {"user": user, "item": item[0]})
    listed = trial.get(f"/users/{user}/recommendations?k=20").json()["items"]
    assert settled(trial)["B"]["people"] == 1
    trial.post("/events", {"user": user, "item": listed[0]["item"]})
    trial.post("/events", {"user": user, "item": item[-1]})
    found = settled(trial)["B"]
    assert (found["hit_rate"], found["hit_rate_people"]) == (1.0, 1)
    trial.live.experiment.window = -1  # the day is over
    found = settled(trial)["B"]
    assert (found["conversion"], found["conversion_people"]) == (1.0, 1)
    assert settled(trial)["A"]["people"] == 0


def test_a_conversion_is_counted_when_its_window_closes_as_the_lack_of_one_is(trial):
    """On the first day only those who took something would be known: a rate of 100 per cent."""
    taker, other = [u for u in map("new-{}".format, range(100)) if HALVES.arm_of(u).name == "A"][:2]
    for user in (taker, other):
        listed = trial.get(f"/users/{user}/recommendations?k=5").json()["items"]
    settled(trial)  # else the event could be noted before the list
    trial.post("/events", {"user": taker, "item": listed[0]["item"]})
    found = settled(trial)["A"]
    assert (found["people"], found["conversion"], found["conversion_people"]) == (2, None, 0)
    trial.live.experiment.window = -1
    found = settled(trial)["A"]
    assert (found["conversion"], found["conversion_people"]) == (0.5, 2)


def test_whoever_takes_nothing_within_the_window_has_not_converted(trial, store):
    user = one_of("A")
    trial.get(f"/users/{user}/recommendations?k=5")
    settled(trial)
    trial.live.experiment.window = -1
    trial.live.experiment._close_windows()
    found = settled(trial)["A"]
    assert (found["conversion"], found["conversion_people"]) == (0.0, 1)


def test_forgetting_somebody_takes_them_out_of_the_experiment(trial, store):
    user = one_of("A")
    trial.post("/events", {"user": user, "item": trial.live.served.item_ids[0]})
    trial.get(f"/users/{user}/recommendations?k=5")
    settled(trial)
    trial.delete(f"/users/{user}")
    assert arm_counts(store, trial.live.experiment.name, 0) == {}


def test_the_shadow_is_judged_on_the_same_events_and_shown_to_nobody(serve, fitted, store):
    client = serve("ltocf")
    shadow = ServedModel(fitted("ease"), "2")
    client.live.experiment = Experiment(store, {"candidate": shadow}, shadow="candidate")
    items = client.live.served.item_ids
    for user in ("ann", "bob"):
        client.post("/events", {"user": user, "item": items[0]})
        assert client.get(f"/users/{user}/recommendations?k=3").json()["model"] == "1"
        client.post("/events", {"user": user, "item": items[5]})
    found = settled(client)
    assert found["in use"]["hit_rate_people"] == found["shadow"]["hit_rate_people"] == 2
    report = report_of(client.live.experiment, "1")
    assert not report["verdicts"][0]["decided"]


def test_metrics_tell_of_the_experiment(trial):
    trial.get(f"/users/{one_of('A')}/recommendations?k=5")
    settled(trial)
    text = trial.get("/metrics").body.decode()
    assert 'ltocf_experiment_people{arm="A"} 1.0' in text
    assert 'ltocf_experiment_decided{arms="A B",measure="hit_rate"} 0.0' in text

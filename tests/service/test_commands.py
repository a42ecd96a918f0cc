"""ltocf serve and demo --serve, without a port."""

import json

import pytest

from ltocf.cli.serve import seconds
from ltocf.errors import ConfigError
from ltocf.service.store.events import EventStore


@pytest.fixture(scope="module")
def run(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "run"
    fitted("ease").save(path)
    return path


def test_one_request_is_answered_without_a_port(run, ltocf):
    code, out, _ = ltocf("serve", run, "--get", "/users/somebody/recommendations?k=2")
    assert code == 0
    assert [entry["rank"] for entry in json.loads(out)["items"]] == [1, 2]
    code, out, _ = ltocf("serve", run, "--get", "nothing", "--token", "x")
    assert code == 2 and "nothing is at this address" in json.loads(out)["detail"]
    assert EventStore.open(run / "events.db").last() == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "error: host 0.0.0.0 admits other machines"),
        (["--update-every", "soon"], "error: cannot read 'soon' as a time"),
        (
            ["--events", "nowhere/events.db"],
            "error: nowhere/events.db: the directory 'nowhere' does not exist",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_served(run, ltocf, arguments, said):
    code, _, err = ltocf("serve", run, "--port", 0, *arguments)
    assert code == 2
    assert said in err


def test_a_directory_that_is_no_run_is_refused_and_stays_as_it_is(tmp_path, ltocf):
    code, _, err = ltocf("serve", tmp_path, "--port", 0)
    assert code == 2 and "not a run directory" in err
    assert not list(tmp_path.iterdir())


def test_times_are_read_with_their_unit():
    assert [seconds(text) for text in ("90", "90s", "1.5h", "30m", "1d")] == [
        90, 90, 5400, 1800, 86_400,
    ]  # fmt: skip
    for text in ("", "h", "-1h", "inf", "nan", "1w"):
        with pytest.raises(ConfigError, match="as a time"):
            seconds(text)


def test_the_demo_serves_its_town_with_events_that_outlive_it(ltocf, tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr("ltocf.service.server.run_server", lambda s, *_: served.append(s))
    code, _, err = ltocf("demo", "--quick", "--epochs", 1, "-o", tmp_path, "--serve")
    assert code == 0, err
    assert (served[0].run, served[0].events) == (tmp_path / "ltocf", str(tmp_path / "events.db"))

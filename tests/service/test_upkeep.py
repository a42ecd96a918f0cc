"""Beside the answers: a run is followed by what is in it, and an update ends with its service."""

import shutil
import signal
import threading
import time

import pytest

from ltocf.service.server import Settings, make_app
from ltocf.service.upkeep import chores as upkeep

from .conftest import Client
from .test_kills import LONGEST_SECONDS, Server, wait_until


@pytest.fixture
def run(fitted, tmp_path):
    fitted("ease").save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def client(run, tmp_path):
    client = Client(make_app(Settings(run=run, events=str(tmp_path / "events.db"))))
    yield client
    client.live.close()


def test_a_run_that_was_trained_anew_in_its_place_is_served(client, run, fitted):
    user = fitted("ease").dataset.split.train.user_ids.ids[0]
    fitted("chebycf").save(run, overwrite=True)
    wait_until(lambda: client.get("/model").json().get("name") == "chebycf")
    expected = fitted("chebycf").recommend(user, 10)["item"].to_list()
    assert [item for item, _ in client.items(user)] == expected


def test_a_run_that_was_removed_is_said_to_be_and_served_on(client, run, fitted, caplog):
    shutil.rmtree(run)
    wait_until(lambda: client.get("/ready").json()["problem"])
    assert "still serving version 1" in client.get("/ready").json()["problem"]
    time.sleep(2 * upkeep.LOOK_SECONDS)
    assert caplog.text.count("still serving version 1") == 1
    assert client.items(fitted("ease").dataset.split.train.user_ids.ids[0])


def test_an_update_ends_with_the_service(run, tmp_path, monkeypatch):
    started = tmp_path / "started"
    sleeper = f"import time, pathlib; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    popen = upkeep.subprocess.Popen  # type: ignore[attr-defined]
    made = []

    def start(command, **options):
        made.append(popen([command[0], "-c", sleeper], **options))
        return made[-1]

    monkeypatch.setattr(upkeep.subprocess, "Popen", start)  # type: ignore[attr-defined]
    ended = threading.Event()
    thread = threading.Thread(
        target=upkeep.update_regularly, args=(run, str(tmp_path / "events.db"), 0.01, ended)
    )
    thread.start()
    wait_until(started.exists)
    ended.set()
    thread.join(LONGEST_SECONDS)
    assert made[0].poll() == -signal.SIGTERM


@pytest.mark.slow
def test_a_service_that_is_ended_while_it_updates_says_goodbye(run, tmp_path):
    server = Server(run, tmp_path / "events.db", "--update-every", "0.05")
    time.sleep(1)
    server.end()
    assert server.process.returncode == 0

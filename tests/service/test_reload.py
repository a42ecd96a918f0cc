"""A configuration file, what is wrong with one, and a SIGHUP under load that turns nobody away."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ltocf.client import Client, ServiceError


@pytest.fixture(scope="module")
def run(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("reload") / "run"
    fitted("ease").save(path)
    return path


@pytest.fixture
def write(run, tmp_path):
    def file(**options):
        lines = [f"{k.replace('_', '-')} = {v!r}" for k, v in ({"run": str(run)} | options).items()]
        path = tmp_path / "service.toml"
        path.write_text("\n".join(lines).replace("True", "true") + "\n")
        return path

    return file


def test_a_file_that_is_right_is_checked(write, ltocf):
    path = write(port=0, timeout=5.0, name=["shop.example"], token="t", log_requests=True)
    code, out, err = ltocf("serve", "--config", path, "--check")
    assert code == 0 and "no problem found" in out + err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"prot": 1}, "unknown option 'prot'; choose from: "),
        ({"host": "0.0.0.0"}, "needs a token"),
        ({"experiment": "A=current:0.5,B=candidate:0.5"}, "version candidate does not exist"),
        ({"port": "many"}, "port"),
        ({"update_every": "often"}, "cannot read 'often' as a time"),
        ({"name": "shop.example"}, "name takes several values: write name = ['shop.example']"),
        (
            {"name": ["https://shop.example"], "token": "t"},
            "name 'https://shop.example' is not a host name",
        ),
        ({"proxy": ["the proxy"], "token": "t"}, "proxy 'the proxy' is not an address"),
        ({"rate": True}, "service.toml: rate cannot be true; it needs a value"),
        ({"log_requests": 1}, "service.toml: log-requests is true or false, not 1"),
        ({"port": 70000}, "service.toml: port cannot be 70000"),
        ({"keys": "missing.json"}, "missing.json: does not exist; make a key with 'ltocf keys"),
    ],
)
def test_a_file_that_is_wrong_says_where(write, ltocf, options, why):
    code, _, err = ltocf("serve", "--config", write(**options), "--check")
    assert code == 2 and why in err


def test_the_command_line_comes_before_the_file(write, ltocf):
    path = write(host="0.0.0.0")
    assert ltocf("serve", "--config", path, "--check", "--host", "127.0.0.1")[0] == 0


def needs_a_key(address):
    """Whether whoever answers refuses to write without one."""
    with Client(address, attempts=1) as client:
        try:
            client.add_event("ann", "nothing")
        except ServiceError as refusal:
            return "a key" in str(refusal)
    return False


def test_a_reload_under_load_turns_nobody_away(write, tmp_path):
    path = write(port=0, events=str(tmp_path / "events.db"))
    command = [sys.executable, "-m", "ltocf", "serve", "--config", str(path)]
    ended = threading.Event()
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            line = process.stderr.readline()
            address = line.partition(" on ")[2].split()[0]
            lists, failures = [], []

            def ask():
                with Client(address, attempts=1) as client:
                    while not ended.is_set():
                        try:
                            lists.append(client.recommend("ann", k=1))
                        except ServiceError as failure:
                            failures.append(str(failure))
                        client.close()  # a new connection each time: those are what could be lost
                        time.sleep(0.005)

            asking = threading.Thread(target=ask)
            asking.start()
            write(port=0, events=str(tmp_path / "events.db"), token="secret")
            process.send_signal(signal.SIGHUP)
            while "reloaded" not in (line := process.stderr.readline()):
                assert line
            assert any(needs_a_key(address) for _ in range(2000))  # once the old process is gone
            before = len(lists)
            time.sleep(0.5)
            ended.set()
            asking.join()
            assert failures == [] and len(lists) > before
            write(prot=1)
            process.send_signal(signal.SIGHUP)
            while "nothing is reloaded: " not in (line := process.stderr.readline()):
                assert line
            with Client(address) as client:
                assert client.recommend("ann", k=1)["items"]
        finally:
            ended.set()
            process.terminate()
            assert process.wait(30) is not None

"""A PostgreSQL server of the test's own, in a temporary directory, as no test may run as root."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def _programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    found = shutil.which("initdb")
    return Path(found).parent if found else None


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgres_server():
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    as_user = {}
    directory = Path(tempfile.mkdtemp(prefix="pg"))
    if os.getuid() == 0:  # the server refuses to run as root
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            account = pwd.getpwnam("nobody")
        os.chown(directory, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data, port = directory / "data", _free_port()

    def run(*command):
        subprocess.run(
            command, check=True, cwd=directory, stdout=subprocess.DEVNULL, timeout=120, **as_user
        )

    run(programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
    options = f"-p {port} -k {directory} -c listen_addresses=127.0.0.1"
    run(programs / "pg_ctl", "-D", data, "-o", options, "-l", directory / "log", "-w", "start")
    try:
        yield f"postgresql://tester@127.0.0.1:{port}"
    finally:
        run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server):
    """The URL of an empty database."""
    import psycopg

    name = f"events_{os.urandom(4).hex()}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"

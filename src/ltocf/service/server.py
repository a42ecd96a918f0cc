"""From a run on disk to a service that listens, follows the run's versions and updates itself."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from ltocf.errors import ConfigError, LtocfError
from ltocf.runs.run import EVENTS, Run
from ltocf.runs.versions import MARKER, in_use, version_path
from ltocf.service.app import create_app
from ltocf.service.events import EventStore
from ltocf.service.guard import LOOPBACK, Rules
from ltocf.service.live import Live
from ltocf.service.served import Served
from ltocf.service.sharing import share_
from ltocf.service.telemetry import SHARED
from ltocf.service.workers import run_workers

log = logging.getLogger("ltocf.service")
LOOK_SECONDS = 1.0  # how often a service looks whether its run has another version


@dataclass(frozen=True)
class Settings:
    """All that a worker needs; small enough to be sent to another process."""

    run: Path
    events: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    rate: float | None = None
    timeout_seconds: float = 10.0
    workers: int = 1
    update_seconds: float | None = None
    hosts: tuple[str, ...] = ()

    @property
    def store(self) -> str:
        return self.events or str(self.run / EVENTS)

    @property
    def rules(self) -> Rules:
        """Outside this machine everything needs the token, and nobody may ask without end."""
        local = self.host in LOOPBACK
        if not local and self.token is None:
            raise ConfigError(
                f"host {self.host} lets other machines in, so it needs a token: "
                "pass one (--token) or set LTOCF_TOKEN"
            )
        rate = self.rate if self.rate is not None else (None if local else 100.0)
        names = (*LOOPBACK, *self.hosts) if local else (self.hosts or None)
        return Rules(self.token, read_needs_token=not local, rate=rate or None, hosts=names)


def load_served(root: Path, store: EventStore) -> Served:
    """The version in use of a run, with its place in the store's events."""
    version = in_use(root).current
    served = Served.of_run(Run.at(version_path(root, version)), str(version), store.id)
    if SHARED in os.environ:  # one of several workers
        share_(served, Path(os.environ[SHARED]))
    return served


def open_store(settings: Settings) -> EventStore:
    """Of a run: nothing is made in a directory that is none."""
    if not (settings.run / MARKER).is_file():
        Run.at(settings.run)  # says so
    return EventStore.open(settings.store)


def make_app(settings: Settings) -> FastAPI:
    """The app of a run and its store, which follows the run's versions."""
    store = open_store(settings)
    app = create_app(
        load_served(settings.run, store),
        store,
        rules=settings.rules,
        timeout_seconds=settings.timeout_seconds,
    )
    arguments = (settings.run, app.state.live)
    threading.Thread(target=follow, args=arguments, name="versions", daemon=True).start()
    return app


def follow(root: Path, live: Live) -> None:
    """Serve whatever version the run has in use, from a second after it changed."""
    while not live.closed.wait(LOOK_SECONDS):
        try:
            if str(in_use(root).current) != live.served.version:
                live.swap(load_served(root, live.store))
                log.info(f"now serving version {live.served.version}")
        except (LtocfError, OSError, SQLAlchemyError) as error:
            log.info(f"still serving version {live.served.version}: {error}")


def update_now_and_then(settings: Settings, ended: threading.Event) -> None:
    """Train the events in beside the service, in a process of its own, until `ended`."""
    assert settings.update_seconds is not None
    command = [sys.executable, "-m", "ltocf", "update", str(settings.run)]
    environment = os.environ | {"LTOCF_EVENTS": settings.store}
    while not ended.wait(settings.update_seconds):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
        log.info(f"update: {lines[-1] if lines else f'exit code {done.returncode}'}")


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as failure:
        listening.close()
        reason = failure.strerror or failure
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from None
    listening.set_inheritable(True)
    return listening


def run_server(settings: Settings, started: Callable[[str], None]) -> None:
    """Serve until a signal ends it; `started` is told the address once it answers."""
    _ = settings.rules  # refused before anything is loaded
    listening = listen(settings.host, settings.port)
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{name}:{listening.getsockname()[1]}"
    ended, say = threading.Event(), partial(started, address)
    if settings.update_seconds is not None:
        arguments = (settings, ended)
        threading.Thread(target=update_now_and_then, args=arguments, daemon=True).start()
    try:
        if settings.workers > 1:
            check(settings)
            with tempfile.TemporaryDirectory() as shared:
                os.environ[SHARED] = shared
                run_workers(serve_on, settings, listening, settings.workers, say)
        else:
            serve_on(settings, listening, say)
    finally:
        ended.set()
        listening.close()


def check(settings: Settings) -> None:
    """What is wrong is said once, not by each worker."""
    open_store(settings).close()
    Run.open(settings.run)


def serve_on(settings: Settings, listening: socket.socket, started: Callable[[], None]) -> None:
    config = uvicorn.Config(
        make_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    _Server(config, started).run([listening])


class _Server(uvicorn.Server):
    """One that says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._said = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._said()

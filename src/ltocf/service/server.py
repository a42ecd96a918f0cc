"""Starts a service from a run on disk: it listens, switches to new versions of the run, and updates
itself."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from ltocf.data.ingest.cells.kinds import parse_kinds
from ltocf.errors import ConfigError
from ltocf.runs.run import EVENTS, Run
from ltocf.runs.versions import MARKER
from ltocf.service.access.guard import LOOPBACK, Rules
from ltocf.service.access.keys import KeyFile
from ltocf.service.app import create_app
from ltocf.service.engine import FADE_AFTER
from ltocf.service.experiments.trial import Trial
from ltocf.service.observing.request_log import set_up_logging
from ltocf.service.observing.telemetry import SHARED
from ltocf.service.observing.tracing import Tracer
from ltocf.service.store.events import EventStore
from ltocf.service.upkeep.chores import END_SECONDS, follow, load_served, update_regularly
from ltocf.service.upkeep.workers import run_workers
from ltocf.service.wire.connections import ConnectionLimits, limited_protocol

log = logging.getLogger("ltocf.service")
SWITCH_SECONDS = 0.0005
COLLECTED_AFTER = 50_000  # objects created and not freed between two collections
HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:]+")  # or an address of IPv6
HANDED_OVER = 3  # the first descriptor after the standard ones


@dataclass(frozen=True)
class Settings:
    """All settings of a worker; picklable, so that they can be sent to another process."""

    run: Path
    events: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    rate: float | None = None
    timeout_seconds: float = 10.0
    fade_after: float = FADE_AFTER
    weigh: str | None = None  # such as view=1,purchase=5,return=-5,dislike=hide
    workers: int = 1
    update_seconds: float | None = None
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()  # addresses whose X-Forwarded-For is trusted
    keys: Path | None = None  # of clients, made by 'ltocf keys'
    experiment: str | None = None  # such as A=current:0.9,B=candidate:0.1
    shadow: str | None = None  # a version that is judged on the same events but not shown
    log_requests: bool = False
    log_paths: bool = False  # paths contain ids of people and items
    trace: bool = False

    @property
    def store(self) -> str:
        return self.events or str(self.run / EVENTS)

    @property
    def rules(self) -> Rules:
        """If clients outside this machine can reach the service, everything needs the token and
        rates are limited. A proxy on this machine lets them in too."""
        local = self.host in LOOPBACK
        reached = not local or bool(self.hosts or self.proxies)
        keys = None if self.keys is None else KeyFile(self.keys)
        if reached and self.token is None and keys is None:
            why = "a name or a proxy" if local else f"host {self.host}"
            raise ConfigError(
                f"{why} admits other machines, so the service needs a token: "
                "pass one (--token), set LTOCF_TOKEN, or name a file of keys (--keys)"
            )
        rate = self.rate if self.rate is not None else (100.0 if reached else None)
        for proxy in self.proxies:
            _check_proxy(proxy)
        hosts = tuple(map(_host_name, self.hosts))
        names = (*LOOPBACK, *hosts) if local else (hosts or None)
        return Rules(
            self.token, read_needs_token=reached, keys=keys, rate=rate or None, hosts=names
        )


def _host_name(text: str) -> str:
    """As requests are compared with it; what no request could name is refused."""
    if HOST_NAME.fullmatch(text) is None:
        raise ConfigError(
            f"name {text!r} is not a host name; leave out the scheme, the port and the path, as in "
            "recommendations.example.com"
        )
    return text.lower()


def _check_proxy(text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ConfigError(
            f"proxy {text!r} is not an address; write one such as 10.0.0.5, or a network such as "
            "10.0.0.0/8"
        ) from None


def open_store(settings: Settings) -> EventStore:
    """The event store of a run. In a directory that is not a run, nothing is created."""
    if not (settings.run / MARKER).is_file():
        Run.at(settings.run)  # raises a RunError if it is not a run
    return EventStore.open(settings.store)


def make_app(settings: Settings) -> FastAPI:
    """The app of a run and its store, which follows the run's versions."""
    store = open_store(settings)
    if settings.weigh is not None and settings.weigh != store.weigh:
        store.weigh_by(settings.weigh)
    app = create_app(
        load_served(settings.run, store),
        store,
        rules=settings.rules,
        timeout_seconds=settings.timeout_seconds,
        fade_after=settings.fade_after,
        log_paths=settings.log_paths,
        tracer=Tracer() if settings.trace else None,
    )
    app.state.run = settings.run
    trial = Trial(settings.run, settings.experiment, settings.shadow)
    trial.follow(app.state.live, load_served)
    warm_up = app.state.live.served.warm_up_many
    threading.Thread(target=warm_up, name="warm up", daemon=True).start()
    arguments = (settings.run, app.state.live, trial)
    threading.Thread(target=follow, args=arguments, name="versions", daemon=True).start()
    return app


def listen(host: str, port: int) -> socket.socket:
    """A new socket, or the one that systemd passes on, which outlives a restart."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        return socket.socket(fileno=HANDED_OVER)
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


def run_server(
    settings: Settings,
    started: Callable[[str], None],
    reload: Callable[[], Settings] | None = None,
) -> None:
    """Serve until a signal ends it; `started` is called with the address once the service answers.
    With `reload`, a SIGHUP lets other processes take over the socket, with the settings that it
    returns."""
    _ = settings.rules, parse_kinds(settings.weigh)  # wrong settings fail before anything is loaded
    listening = listen(settings.host, settings.port)
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{name}:{listening.getsockname()[1]}"
    ended, say = threading.Event(), partial(started, address)
    updates: threading.Thread | None = None
    if settings.update_seconds is not None:
        arguments = (settings.run, settings.store, settings.update_seconds, ended)
        updates = threading.Thread(target=update_regularly, args=arguments, daemon=True)
        updates.start()
    # uvicorn raises the signal that ended it again, which must not interrupt the clean-up.
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        if settings.workers > 1 or reload is not None:
            check(settings)
            with tempfile.TemporaryDirectory() as shared:
                os.environ[SHARED] = shared
                again = None if reload is None else partial(_checked, reload)
                run_workers(serve_on, settings, listening, settings.workers, say, again)
        else:
            serve_on(settings, listening, say)
    finally:
        ended.set()
        listening.close()
        if updates is not None:
            updates.join(END_SECONDS)
        signal.signal(signal.SIGTERM, before)


def check(settings: Settings) -> None:
    """Fail once, before workers start, and not in each of them."""
    _ = settings.rules
    parse_kinds(settings.weigh)
    trial = Trial(settings.run, settings.experiment, settings.shadow)
    open_store(settings).close()
    Run.open(settings.run)
    trial.versions()


def _checked(reload: Callable[[], Settings]) -> tuple[Settings, int]:
    settings = reload()
    check(settings)
    return settings, settings.workers


def serve_on(settings: Settings, listening: socket.socket, started: Callable[[], None]) -> None:
    set_up_logging(settings.log_requests)
    # A list passes through threads; beside a large request each of them may wait so long for
    # Python's lock.
    sys.setswitchinterval(SWITCH_SECONDS)
    # A second thread of BLAS waits for its next product by spinning, on the core that reads and
    # answers requests: processor time for each list doubles.
    threadpool_limits(1, user_api="blas")
    config = uvicorn.Config(
        make_app(settings),
        http=limited_protocol(ConnectionLimits()),  # type: ignore[arg-type]
        ws="none",
        log_level="error",  # mistakes of clients are not logged: they could fill the disk
        access_log=False,
        server_header=False,
        # Otherwise any local client could evade --rate by sending another address each time.
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    _Server(config, started).run([listening])


class _Server(uvicorn.Server):
    """A server that reports when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._said = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        collect_rarely()
        self._said()


def collect_rarely() -> None:
    """Exempt all present objects, which stay, from garbage collection, and collect others only
    after many requests. A full collection stops the service for a tenth of a second, and a thousand
    connections at once would start several."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, 20, 20)

"""Several processes that answer on one socket; one that dies is replaced."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from typing import TypeVar

from ltocf.errors import LtocfError
from ltocf.machine.processes import end_with_parent

Settings = TypeVar("Settings")
# Serves on a socket until a signal ends it; its last argument is to be called once it answers.
Serve = Callable[[Settings, socket.socket, Callable[[], None]], None]

log = logging.getLogger("ltocf.service")
_CONTEXT = multiprocessing.get_context("spawn")
START_SECONDS = 120.0  # in which a new process must answer
END_SECONDS = 20.0  # requests under way may be finished in that time
LOOK_SECONDS = 0.2
AGAIN_SECONDS = 1.0  # between two starts, if each one dies at once


def run_workers(
    serve: Serve[Settings],
    settings: Settings,
    listening: socket.socket,
    number: int,
    started: Callable[[], None],
    reload: Callable[[], tuple[Settings, int]] | None = None,
) -> None:
    """Serve in this many processes until a signal ends them; `started` is called once, when the
    first one answers. If none ever does, an LtocfError is raised.

    On SIGHUP, `reload` returns new settings and a number of processes. New processes then start on
    the same socket, and the old ones end once the new ones answer, so that no request is refused.
    If the new ones do not answer, the old ones stay.

    This is not uvicorn's own supervisor, because that kills a worker which does not answer within
    five seconds (importing torch may take as long), and its workers outlive it if it is killed.
    """
    ended, asked, context = threading.Event(), threading.Event(), _CONTEXT
    answering = context.Event()
    watched = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if reload else ()))
    before = {name: signal.getsignal(name) for name in watched}

    def end(*_: object) -> None:
        ended.set()

    def start() -> SpawnProcess:
        arguments = (serve, settings, listening, answering)
        process = context.Process(target=_work, args=arguments)
        # Ctrl-C reaches every process. Workers inherit that it is ignored, until they serve.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.start()
        signal.signal(signal.SIGINT, end)
        return process

    signal.signal(signal.SIGTERM, end)
    if reload is not None:
        signal.signal(signal.SIGHUP, lambda *_: asked.set())

    running = [start() for _ in range(number)]
    said = False
    try:
        while not ended.is_set():
            wait([process.sentinel for process in running], LOOK_SECONDS)
            if not said and answering.is_set():
                said = True
                started()
            if asked.is_set() and reload is not None:
                asked.clear()
                old = settings, number, answering
                try:
                    settings, number = reload()
                    answering = context.Event()
                    fresh = [start() for _ in range(number)]
                except LtocfError as refusal:
                    settings, number, answering = old
                    log.warning(f"nothing is reloaded: {refusal}")
                    continue
                if _answers(answering, fresh, ended):
                    log.info("reloaded: other processes answer now")
                    _end(running)
                    running = fresh
                else:
                    settings, number, answering = old
                    log.warning("nothing is reloaded: the new processes did not answer")
                    _end(fresh)
            alive = [process for process in running if process.is_alive()]
            if len(alive) < len(running) and not ended.is_set():
                if not said:
                    raise LtocfError(
                        "a worker ended before it could answer; the reason is printed above"
                    )
                ended.wait(AGAIN_SECONDS)
                alive += [start() for _ in range(number - len(alive))]
            running = alive
    finally:
        _end(running)
        for name, handler in before.items():
            signal.signal(name, handler)


def _answers(answering: Event, fresh: list[SpawnProcess], ended: threading.Event) -> bool:
    """Whether one of the new processes answers before they all die, time is up, or the service
    ends."""
    give_up = time.monotonic() + START_SECONDS
    while not answering.wait(LOOK_SECONDS):
        alive = any(process.is_alive() for process in fresh)
        if not alive or ended.is_set() or time.monotonic() > give_up:
            return False
    return True


def _end(running: list[SpawnProcess]) -> None:
    for process in running:
        process.terminate()
    for process in running:
        process.join(END_SECONDS)
        process.kill()
        process.join()


def _work(
    serve: Serve[Settings], settings: Settings, listening: socket.socket, answering: Event
) -> None:
    end_with_parent()
    try:
        serve(settings, listening, answering.set)
    except LtocfError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

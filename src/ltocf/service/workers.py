"""Several processes that answer on one socket; one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from typing import TypeVar

from ltocf.errors import LtocfError

Settings = TypeVar("Settings")
# Serves on a socket until a signal ends it; its last argument is to be called once it answers.
Serve = Callable[[Settings, socket.socket, Callable[[], None]], None]

END_SECONDS = 20.0  # what is answered now may be answered to the end
LOOK_SECONDS = 0.2
AGAIN_SECONDS = 1.0  # between two starts, should each one die at once


def run_workers(
    serve: Serve[Settings],
    settings: Settings,
    listening: socket.socket,
    number: int,
    started: Callable[[], None],
) -> None:
    """Serve in so many processes until a signal ends them; `started` is called once, when the first
    one answers. If none ever does, an LtocfError.

    uvicorn's own supervisor kills a worker that does not answer it within five seconds, which
    importing torch may take; and its workers outlive it if it is killed.
    """
    ended, answering = threading.Event(), multiprocessing.get_context("spawn").Event()
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}

    def end(*_: object) -> None:
        ended.set()

    def start() -> SpawnProcess:
        arguments = (serve, settings, listening, answering)
        process = multiprocessing.get_context("spawn").Process(target=_work, args=arguments)
        # Ctrl-C reaches every process. A worker inherits that it is ignored until it serves.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.start()
        signal.signal(signal.SIGINT, end)
        return process

    signal.signal(signal.SIGTERM, end)

    running = [start() for _ in range(number)]
    said = False
    try:
        while not ended.is_set():
            wait([process.sentinel for process in running], LOOK_SECONDS)
            if not said and answering.is_set():
                said = True
                started()
            alive = [process for process in running if process.is_alive()]
            if len(alive) < len(running) and not ended.is_set():
                if not said:
                    raise LtocfError("a worker ended before it answered; its reason is above")
                ended.wait(AGAIN_SECONDS)
                alive += [start() for _ in range(number - len(alive))]
            running = alive
    finally:
        _end(running)
        for name, handler in before.items():
            signal.signal(name, handler)


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
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        serve(settings, listening, answering.set)
    except LtocfError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

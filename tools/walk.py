"""How many files a row of a CSV passes on its way to a list, and an event on its way into one.

python tools/walk.py

Counts the files of the package in which a function is called, as a newcomer would have to open them
to follow the way; what runs while a file is being imported, such as a table that is made there, is
no step of it. `ltocf train` of a closed form: nothing is trained.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

PACKAGE = Path(__file__).parent.parent / "src" / "ltocf"
TASTES = {"ann": "tea jazz", "bob": "tea chess jazz", "cem": "jazz chess go", "dee": "tea go"}


class Trace:
    """While it is entered, notes the files of the package in which a function is called, in any
    thread that starts meanwhile."""

    def __init__(self) -> None:
        self._touched: set[str] = set()

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def take(self) -> set[str]:
        """The files since the last time."""
        touched, self._touched = self._touched, set()
        package = str(PACKAGE.resolve())
        return {name.removeprefix(package + "/") for name in touched if name.startswith(package)}

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        # The bodies of modules and classes are not optimised: they run when a file is imported, and
        # so does what they call.
        if event == "call" and _is_function(frame) and _is_function(frame.f_back):
            self._touched.add(frame.f_code.co_filename)


def _is_function(frame: FrameType | None) -> bool:
    return frame is None or bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def command(*words: str) -> None:
    from ltocf.cli import command_line

    command_line()(list(words), standalone_mode=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, run = Path(folder) / "tiny.csv", Path(folder) / "run"
        rows = [f"{user},{item}" for user, items in TASTES.items() for item in items.split()]
        log.write_text("\n".join(["user,item", *rows]) + "\n")
        with Trace() as trace:
            command("train", str(log), "--model", "popularity", "-o", str(run))
            train = trace.take()
            command("recommend", str(run), "--user", "ann")
            ask = trace.take()
            from ltocf.service.server import Settings, make_app

            service = make_app(Settings(run, None))
            start = trace.take()
            asyncio.run(live(service))
            event = trace.take()
        service.state.live.close()
    walks = {
        "CSV to model": train,
        "model to list": ask,
        "event to list": start | event,
        "event to list, once the service runs": event,
    }
    if empty := [name for name, files in walks.items() if not files]:
        raise SystemExit(f"no file of {PACKAGE} was called ({empty[0]}): is another one installed?")
    print(json.dumps({name: len(files) for name, files in walks.items()}))
    if "--list" in sys.argv:
        for name, files in walks.items():
            print(name, *sorted(files), sep="\n  ")


async def live(service: FastAPI) -> None:
    """A service takes one event and makes one list."""
    from ltocf.service.wire.test_client import ask

    body = json.dumps({"user": "ann", "item": "go"}).encode()
    for method, target, sent in (
        ("POST", "/events", body),
        ("GET", "/users/ann/recommendations?k=2", b""),
    ):
        reply = await ask(service, method, target, sent)
        assert reply.status < 300, reply


if __name__ == "__main__":
    main()

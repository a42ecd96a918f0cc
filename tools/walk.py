"""How many files a row of a CSV passes on its way to a list, and an event on its way into one.

python tools/walk.py

Counts the files of the package in which a function is called, as a newcomer would have to open them
to follow the way. `ltocf train` of a closed form: nothing is trained.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).parent.parent / "src" / "ltocf"
TASTES = {"ann": "tea jazz", "bob": "tea chess jazz", "cem": "jazz chess go", "dee": "tea go"}


def files_touched(walk: Callable[[], object]) -> set[str]:
    """The files of the package that `walk` calls a function of, in any thread."""
    import threading

    touched: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        # The bodies of modules and classes are not optimised: they run when a file is imported.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            touched.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    package = str(PACKAGE.resolve())
    return {name.removeprefix(package + "/") for name in touched if name.startswith(package)}


def command(*words: str) -> None:
    from ltocf.cli import command_line

    command_line()(list(words), standalone_mode=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, run = Path(folder) / "tiny.csv", Path(folder) / "run"
        rows = [f"{user},{item}" for user, items in TASTES.items() for item in items.split()]
        log.write_text("\n".join(["user,item", *rows]) + "\n")
        train = files_touched(
            lambda: command("train", str(log), "--model", "popularity", "-o", str(run))
        )
        ask = files_touched(lambda: command("recommend", str(run), "--user", "ann"))
        event = files_touched(lambda: asyncio.run(live(run)))
    walks = {"CSV to model": train, "model to list": ask, "event to list": event}
    print(json.dumps({name: len(files) for name, files in walks.items()}))
    if "--list" in sys.argv:
        for name, files in walks.items():
            print(name, *sorted(files), sep="\n  ")


async def live(run: Path) -> None:
    """A service over the run takes one event and makes one list."""
    from ltocf.service.server import Settings, make_app
    from ltocf.service.wire.test_client import ask

    service = make_app(Settings(run, None))
    body = json.dumps({"user": "ann", "item": "go"}).encode()
    for method, target, sent in (
        ("POST", "/events", body),
        ("GET", "/users/ann/recommendations?k=2", b""),
    ):
        reply = await ask(service, method, target, sent)
        assert reply.status < 300, reply
    service.state.live.close()


if __name__ == "__main__":
    main()

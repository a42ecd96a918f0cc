"""The command line: each command parses, calls one library function and prints.

Nothing heavy is imported before a command runs, so that `ltocf --help` answers at once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from ltocf.cli.options import process_count, with_threads
from ltocf.errors import LtocfError

# The file of each command. Only the one that is called is imported: the others take longer than
# many a command itself.
COMMANDS = {
    "demo": "demo",
    "prepare": "prepare",
    "datasets": "datasets",
    "train": "train",
    "evaluate": "evaluate",
    "compare": "compare",
    "refit": "refit",
    "models": "models",
    "configs": "configs",
    "recommend": "recommend",
    "similar": "similar",
    "explain": "explain",
    "popular": "popular",
    "items": "items",
    "response": "response",
    "serve": "serve",
    "update": "update",
    "rollback": "rollback",
    "keys": "keys",
    "backup": "backup",
    "restore": "backup",
    "prune": "backup",
    "export": "export",
    "tune": "tune",
    "reproduce": "reproduce",
    "cache": "cache",
    "doctor": "doctor",
}
COMPUTE = {"demo", "train", "evaluate", "compare", "refit", "recommend", "similar", "update"}
COMPUTE |= {"export", "tune"}
# They multiply nothing, so OpenBLAS need not start threads, which takes a fifth of their time.
LOOK_UP = {"items", "popular"}
SEVERAL = {"train", "evaluate", "recommend"}  # processes can share the work


def command_line(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="ltocf",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
        help="Collaborative filtering with LT-OCF: who should see what, and why.",
        epilog="Start with: ltocf demo. Error messages are explained in docs/troubleshooting.md.",
    )
    app.callback()(_root)
    for name in names:
        command = getattr(import_module(f"ltocf.cli.{COMMANDS[name]}"), name)
        computes = name in COMPUTE
        app.command()(with_threads(command, several=name in SEVERAL) if computes else command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from ltocf import __version__

        typer.echo(f"ltocf {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: 2 for what the user can fix, 130 for Ctrl-C."""
    # Importing a library makes many objects that stay. By default Python looks for garbage among
    # them after every 700: a tenth of the time that a short command takes.
    gc.set_threshold(50_000, 20, 20)
    try:
        _run()
    except SystemExit as ended:
        if process_count() > 1:
            _leave(ended.code)
        raise


def _leave(code: object) -> None:
    """End this process without taking Python down. gloo's threads outlive their process group, and
    one that lets go of a tensor while Python is taken down aborts the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _run() -> None:
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: what was done is kept, and it is said
    try:
        try:
            called = sys.argv[1:2]
            if called and called[0] in LOOK_UP:
                os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            command_line(called if called and called[0] in COMMANDS else COMMANDS)()
        finally:
            sys.stdout.flush()
    except LtocfError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # nobody reads on, as in 'ltocf models | head -1'
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as failure:
        where = f"{failure.filename}: " if failure.filename else ""
        print(f"error: {where}{failure.strerror or failure}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)

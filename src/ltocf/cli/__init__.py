"""The command line: each command parses, calls one library function and prints.

Nothing heavy is imported before a command runs, so that `ltocf --help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from ltocf.cli.backup import backup, prune, restore
from ltocf.cli.cache import cache
from ltocf.cli.compare import compare
from ltocf.cli.configs import configs
from ltocf.cli.datasets import datasets
from ltocf.cli.demo import demo
from ltocf.cli.doctor import doctor
from ltocf.cli.evaluate import evaluate
from ltocf.cli.explain import explain
from ltocf.cli.export import export
from ltocf.cli.items import items
from ltocf.cli.keys import keys
from ltocf.cli.models import models
from ltocf.cli.options import process_count, with_threads
from ltocf.cli.popular import popular
from ltocf.cli.prepare import prepare
from ltocf.cli.recommend import recommend
from ltocf.cli.refit import refit
from ltocf.cli.reproduce import reproduce
from ltocf.cli.response import response
from ltocf.cli.rollback import rollback
from ltocf.cli.serve import serve
from ltocf.cli.similar import similar
from ltocf.cli.train import train
from ltocf.cli.tune import tune
from ltocf.cli.update import update
from ltocf.errors import LtocfError

app = typer.Typer(
    name="ltocf",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    help="Collaborative filtering with LT-OCF: who should see what, and why.",
    epilog="Start with: ltocf demo. Error messages are explained in docs/troubleshooting.md.",
)
COMMANDS = (
    demo,
    prepare,
    datasets,
    train,
    evaluate,
    compare,
    refit,
    models,
    configs,
    recommend,
    similar,
    explain,
    popular,
    items,
    response,
    serve,
    update,
    rollback,
    keys,
    backup,
    restore,
    prune,
    export,
    tune,
    reproduce,
    cache,
    doctor,
)
COMPUTE = (demo, train, evaluate, compare, refit, recommend, similar, update, export, tune)
SEVERAL = (train, evaluate, recommend)  # processes can share the work
for command in COMMANDS:
    several = command in SEVERAL
    app.command()(with_threads(command, several=several) if command in COMPUTE else command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ltocf import __version__

        typer.echo(f"ltocf {__version__}")
        raise typer.Exit


@app.callback()
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
            app()
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

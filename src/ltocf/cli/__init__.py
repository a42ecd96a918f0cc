"""The command line: each command parses, calls one library function and prints.

Nothing heavy is imported before a command runs, so that `ltocf --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ltocf.cli import data, demo, recommending, response, shipping, training
from ltocf.errors import LtocfError

app = typer.Typer(
    name="ltocf",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Collaborative filtering with LT-OCF: who should see what, and why.",
    epilog="Start with: ltocf demo",
)
for command in (
    demo.demo,
    data.prepare,
    data.datasets,
    training.train,
    training.evaluate,
    training.models,
    recommending.recommend,
    recommending.similar,
    recommending.explain,
    response.response,
    shipping.update,
    shipping.export,
    shipping.tune,
):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ltocf import __version__

        typer.echo(f"ltocf {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: 2 for what the user can fix, 130 for Ctrl-C."""
    try:
        app()
    except LtocfError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)

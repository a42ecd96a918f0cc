"""ltocf serve"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.options import RunPath
from ltocf.cli.output import say
from ltocf.errors import ConfigError

if TYPE_CHECKING:
    from ltocf.service.server import Settings

Events = Annotated[
    str | None,
    typer.Option(
        "--events",
        metavar="STORE",
        envvar="LTOCF_EVENTS",
        show_envvar=True,
        help="Where events are kept: a SQLite file or postgresql://user@host/database. "
        "Default: events.db in the run's directory.",
    ),
]
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def serve(
    run: RunPath,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port to listen on; 0 takes a free one.")
    ] = 8000,
    events: Events = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LTOCF_TOKEN",
            show_envvar=True,
            help="What clients must send to write or delete, and from other machines for all.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A host name to answer to, such as behind a proxy; repeat for more.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Requests a second from one client; 0 for any number. Default: any number on "
            "loopback, else 100.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which a request is given up.")
    ] = 10.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer.")] = 1,
    update_every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Train the events in this often, such as 30m or 1h."),
    ] = None,
    get: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Answer one GET request on standard output and exit."),
    ] = None,
) -> None:
    """Serve a run over HTTP: lists that know each event at once, their reasons, and a page."""
    settings = settings_of(
        run,
        events,
        host=host,
        port=port,
        token=token or None,
        rate=rate,
        timeout_seconds=timeout,
        workers=workers,
        update_seconds=None if update_every is None else seconds(update_every),
        hosts=tuple(name or ()),
    )
    if get is not None:
        answer_one(settings, get)
    else:
        serve_until_stopped(settings)


def settings_of(run: Path, events: str | None, **others: Any) -> Settings:
    try:
        from ltocf.service.server import Settings
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"serving needs {missing.name}: install it with pip install 'ltocf[serve]'"
        ) from None
    return Settings(run, events, **others)


def serve_until_stopped(settings: Settings, *, open_browser: bool = False) -> None:
    import logging

    from ltocf.service.server import run_server

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("ltocf").setLevel(logging.INFO)

    def started(address: str) -> None:
        say(f"serving {settings.run} on {address} (Ctrl-C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    run_server(settings, started)


def answer_one(settings: Settings, path: str) -> None:
    import asyncio
    import sys

    from ltocf.service.asking import ask
    from ltocf.service.server import make_app

    app = make_app(settings)
    headers = {} if settings.token is None else {"authorization": f"Bearer {settings.token}"}
    reply = asyncio.run(ask(app, "GET", path if path.startswith("/") else f"/{path}", b"", headers))
    app.state.live.close()
    sys.stdout.write(reply.body.decode() + "\n")
    if reply.status >= 400:
        raise typer.Exit(2)


def seconds(text: str) -> float:
    """'90', '30m' or '1.5h' as seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        found = float(number) * UNITS[unit]
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"cannot read {text!r} as a time; write 90s, 30m, 1h or 1d")
    return found

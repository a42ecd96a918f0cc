"""ltocf serve"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.config_file import USAGE_ERROR, ConfigFile
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
        help="Where events are stored: a SQLite file or postgresql://user@host/database. "
        "Default: events.db in the run's directory.",
    ),
]
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def serve(
    context: typer.Context,
    run: RunPath,
    config: ConfigFile = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check that the run can be served so, and exit."),
    ] = False,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on. Any other than loopback needs a token."),
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
            help="The secret that clients must send to write or delete, and, from other machines, "
            "for every request.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A host name to answer to, such as the public one behind a proxy. Repeat it for "
            "more.",
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="The address of a trusted proxy, whose X-Forwarded-For names the client. Repeat "
            "it for more.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Requests per second that one client may send; 0 for no limit. Default: no limit "
            "on loopback, 100 otherwise.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which a request is abandoned.")
    ] = 10.0,
    fade_after: Annotated[
        float,
        typer.Option(
            min=0,
            help="An item that a person was shown this often and did not touch gets half its "
            "score; 0 turns this off.",
        ),
    ] = 10.0,
    weigh: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="What each kind of event counts: view=1,purchase=5,return=-5,dislike=hide. It is "
            "kept with the events, and updates use it too. Default: the table that the data were "
            "prepared with, then the kind's name.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many processes answer requests.")] = 1,
    update_every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How often the model learns from new events, such as 30m or 1h."
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file of clients' keys and scopes, made by 'ltocf keys'."
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            metavar="ARMS",
            help="Versions to compare in an A/B test and the share of people who get each, such as "
            "A=current:0.9,B=candidate:0.1.",
        ),
    ] = None,
    shadow: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="A version that is measured on all events but shown to nobody, such as candidate.",
        ),
    ] = None,
    log_requests: Annotated[
        bool, typer.Option(help="Write one JSON line for each request to standard error.")
    ] = False,
    log_paths: Annotated[
        bool,
        typer.Option(
            "--log-paths",
            help="Log requests with their paths, which contain the ids of people and items.",
        ),
    ] = False,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Send OpenTelemetry spans, as the OTEL_ variables configure."),
    ] = False,
    get: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Answer one GET request on standard output and exit."),
    ] = None,
) -> None:
    """Serve a run over HTTP: lists that follow every event at once, their reasons, and a page."""
    settings = make_settings(context.params)
    if check:
        from ltocf.service.server import check as check_settings

        check_settings(settings)
        say(f"{config or settings.run}: no problem found")
    elif get is not None:
        answer_one(settings, get)
    else:
        reload = partial(read_again, context) if config is not None else None
        serve_until_stopped(settings, reload=reload)


def make_settings(given: Mapping[str, Any]) -> Settings:
    """The settings of the service, from the command's parameters."""
    every = given["update_every"]
    paths = given["log_paths"]
    return settings_of(
        Path(given["run"]),
        given["events"],
        host=given["host"],
        port=given["port"],
        token=given["token"] or None,
        rate=given["rate"],
        timeout_seconds=given["timeout"],
        fade_after=given["fade_after"],
        weigh=given["weigh"],
        workers=given["workers"],
        update_seconds=None if every is None else seconds(every),
        hosts=tuple(given["name"] or ()),
        proxies=tuple(given["proxy"] or ()),
        keys=None if given["keys"] is None else Path(given["keys"]),
        experiment=given["experiment"],
        shadow=given["shadow"],
        log_requests=given["log_requests"] or paths,
        log_paths=paths,
        trace=given["trace"],
    )


def read_again(context: typer.Context) -> Settings:
    """Read the settings again, as the command line and the file say now."""
    import sys

    arguments = sys.argv[sys.argv.index("serve") + 1 :]
    try:
        again = context.command.make_context("serve", arguments)
    except USAGE_ERROR as refusal:
        raise ConfigError(refusal.format_message()) from None
    return make_settings(again.params)


def settings_of(run: Path, events: str | None, **others: Any) -> Settings:
    try:
        from ltocf.service.server import Settings
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"serving needs {missing.name}: install it with pip install 'ltocf[serve]'"
        ) from None
    return Settings(run, events, **others)


def serve_until_stopped(
    settings: Settings,
    *,
    open_browser: bool = False,
    reload: Callable[[], Settings] | None = None,
) -> None:
    from ltocf.service.observing.request_log import set_up_logging
    from ltocf.service.server import run_server

    set_up_logging(settings.log_requests)

    def started(address: str) -> None:
        say(f"serving {settings.run} on {address} (Ctrl-C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    run_server(settings, started, reload)


def answer_one(settings: Settings, path: str) -> None:
    import asyncio
    import sys

    from ltocf.service.server import make_app
    from ltocf.service.wire.test_client import ask

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

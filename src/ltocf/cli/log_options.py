"""How a log is read and split, as options: one table for every command that takes a log."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer


def _option(type_: Any, help: str, *names: str, **more: Any) -> Any:
    """An option that is None unless it is given, so that a command knows which ones were given."""
    return Annotated[type_ | None, typer.Option(*names, help=help, show_default=False, **more)]


def _column(what: str) -> Any:
    guessed = "its name, or its number from 1. By default it is guessed."
    return _option(str, f"The column of {what}: {guessed}", metavar="COLUMN")


# The fields of `data.ingest.log.Reading`.
READING: dict[str, Any] = {
    "user": _column("users"),
    "item": _column("items"),
    "time": _column("times"),
    "rating": _column("ratings"),
    "threshold": _option(
        float,
        "A rating of at least this is a like. An item with a lower rating counts as seen: the "
        "model does not learn from it, and it is not recommended to that user.",
    ),
    "weight": _option(
        str,
        "The column of weights, which say how strong an interaction is: plays, a quantity or a "
        "rating.",
        metavar="COLUMN",
    ),
    "repeats": _option(
        str,
        "How the weights of a repeated pair are combined. Without --weight each row weighs 1, so "
        "'sum' counts the rows.",
        metavar="sum|max",
    ),
    "kind": _option(
        str,
        "The column that tells views from purchases. --weigh gives each kind its weight.",
        metavar="COLUMN",
    ),
    "weigh": _option(
        str,
        "The weight of each kind: view=1,cart=3,purchase=5,return=-5,dislike=hide. A weight below "
        "0 takes earlier interactions back, 0 ignores the row, and 'hide' means never recommend "
        "the item to that user again. 'auto' chooses the weights (prepare --target KIND).",
        metavar="KIND=N,...",
    ),
    "time_format": _option(
        str,
        "How times are written: day-first, month-first, a form such as '%d.%m.%Y %H:%M', or what "
        "numbers count in (seconds, milliseconds, microseconds, nanoseconds, numbers).",
        metavar="FORM",
    ),
    "separator": _option(
        str, "The separator of columns, such as ';' or '::'. By default it is detected."
    ),
    "header": _option(
        bool,
        "Whether the first row names the columns. By default it is detected.",
        "--header/--no-header",
    ),
    "encoding": _option(
        str, "The text encoding, such as utf-8, utf-16 or latin-1. By default it is detected."
    ),
    "skip_bad": _option(
        bool,
        "Skip and count rows that cannot be read, instead of failing.",
        "--skip-bad",
    ),
}
# The other fields of `data.ingest.prepare.Recipe`.
SPLITTING: dict[str, Any] = {
    "min_user": _option(int, "Drop users with fewer interactions than this. Default: 1."),
    "min_item": _option(int, "Drop items with fewer interactions than this. Default: 1."),
    "max_user": _option(
        int, "Keep at most this many interactions of each user, the latest ones. Default: all."
    ),
    "split": _option(
        str,
        "How to choose test pairs: ratio, temporal, leave-last-out, cold-items (all pairs of a "
        "tenth of the items), users (all pairs of a tenth of the people) or none. Default: ratio.",
    ),
    "ratio": _option(float, "The share of pairs that go to train. Default: 0.8."),
    "unknown": _option(
        str,
        "What to do with test pairs whose user or item is not in train: drop, keep or error. "
        "Default: drop.",
    ),
    "validation": _option(
        float, "The share of train to hold out for choosing the best epoch. Default: none."
    ),
}


def with_log_options(*tables: dict[str, Any]) -> Callable[..., Callable[..., None]]:
    """Decorate a command to take these options too. It receives those that were given in one
    dictionary, `given`, keyed by the field names of `Reading` and `Recipe`."""
    options = {name: kind for table in tables for name, kind in table.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            chosen = {name: values.pop(name) for name in options}
            given = {name: value for name, value in chosen.items() if value is not None}
            command(**values, given=given)

        own = inspect.signature(command, eval_str=True).parameters
        kept = [parameter for name, parameter in own.items() if name != "given"]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        whole = inspect.Signature([*kept, *added])
        run.__signature__ = whole  # type: ignore[attr-defined]
        run.__annotations__ = {name: p.annotation for name, p in whole.parameters.items()}
        return run

    return decorate

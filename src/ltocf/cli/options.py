"""Options that several commands share."""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ltocf.errors import ConfigError


def _existing(run: Path) -> Path:
    from ltocf.runs.versions import refuse_foreign

    refuse_foreign(run)
    return run


def _all_existing(runs: list[Path]) -> list[Path]:
    return [_existing(run) for run in runs]


# Checked before the command starts, so that a wrong path fails at once and not after torch loads.
RunPath = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run directory.", show_default=False, callback=_existing),
]
RunPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...", help="Run directories.", show_default=False, callback=_all_existing
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]
K = Annotated[int, typer.Option("--k", "-k", help="How many to list, at most.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="List only the items that meet this condition, such as category=tea, price<20 or "
        "tags~vegan. Repeat it for more conditions.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if any id is unknown.")]
Ids = list[str] | None
History = Annotated[
    Ids,
    typer.Option(
        "--history",
        metavar="ID,ID,...",
        help="A new person's items, the latest last. Repeat it for more people.",
    ),
]

Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="How many threads to compute with. By default, one for each core that this process "
        "may use.",
        show_default=False,
    ),
]


# torchrun sets these variables. Reading them here spares a command from loading torch.
def process_count() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def owns_the_output() -> bool:
    """Whether this process checks the output: the first rank, and not one that was restarted."""
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return restarts == 0 and int(os.environ.get("RANK", "0")) == 0


def with_threads(command: Callable[..., None], *, several: bool) -> Callable[..., None]:
    """The command with an option --threads, which limits everything that it computes.

    With `several`, torchrun may start several processes that share the work; only the first of them
    prints."""

    @wraps(command)
    def run(*arguments: Any, threads: int | None, **options: Any) -> None:
        from ltocf.machine.threads import use_threads

        if not several and process_count() > 1:
            raise ConfigError(
                f"'{command.__name__}' runs in one process only; start it without torchrun"
            )
        use_threads(threads)
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            command(*arguments, **options)
            return
        from ltocf.distributed import is_first, processes

        with processes(), open(os.devnull, "w") as nowhere, ExitStack() as output:
            if not is_first():
                output.enter_context(redirect_stdout(nowhere))
                output.enter_context(redirect_stderr(nowhere))
            command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "threads", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Threads
    )
    whole = own.replace(parameters=[*own.parameters.values(), option])
    run.__signature__ = whole  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in whole.parameters.items()}
    return run


def split_ids(texts: Sequence[str]) -> list[str]:
    """['A,B', 'C'] -> ['A', 'B', 'C']; an id that holds a comma is written in double quotes."""
    lists = (csv.reader([text], skipinitialspace=True) for text in texts if text.strip())
    return [id_ for rows in lists for id_ in next(rows, [])]


def refuse_unknown(run: Path, strict: bool = False, **ids: Sequence[str] | None) -> None:
    """Refuse an unknown user or item at once, before the seconds that loading the model takes."""
    from ltocf.recommend.ids import refuse_unknown as refuse
    from ltocf.runs.versions import current_path

    refuse(current_path(run) / "data", strict=strict, **{key: ids[key] or () for key in ids})


def the_only(values: Sequence[str] | None, flag: str) -> str | None:
    """The value of an option that may be given once; giving it twice is an error."""
    if values is not None and len(values) > 1:
        raise ConfigError(f"{flag} is given {len(values)} times; give it once")
    return values[0] if values else None


def deployed_path(run: Path) -> Path:
    """Where `--deploy` and `ltocf refit` put the model that is fitted to every pair."""
    return run.with_name(f"{run.resolve().name}-deploy")

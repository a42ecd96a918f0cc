"""ltocf prepare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ltocf.cli.log_options import READING, SPLITTING, with_log_options
from ltocf.cli.output import Json, print_json
from ltocf.errors import ConfigError
from ltocf.progress import show_progress


@with_log_options(READING, SPLITTING)
def prepare(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="CSV, TSV, MovieLens .dat or Parquet, also compressed; a folder or a zip archive "
            "of such files; MovieLens' own folder or zip; or - for standard input.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DATASET", help="A new directory.")
    ],
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="A log of test pairs, instead of a split."),
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            "--ordered/--unordered",
            help="With a folder of train.txt and test.txt: whether each line lists a user's items "
            "from the earliest to the latest. By default it is detected.",
            show_default=False,
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            metavar="FILE",
            help="A table of items and their attributes: CSV, Parquet or JSON lines. All of them "
            "become items of the data set, touched or not.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="With --weigh auto: the kind to predict best; the weights are chosen for it.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of a random split.")] = 0,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="For a log of several files: how many processes read them, each a share. The data "
            "set is the same; memory grows with them.",
        ),
    ] = 1,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing data set.")
    ] = False,
    as_json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Turn a log of who touched what into a data set to train on."""
    from ltocf.data.ingest.prepare import Recipe
    from ltocf.data.ingest.prepare import prepare as prepare_log
    from ltocf.data.sources.text_folder import is_text_folder, prepare_text_folder

    chosen: list[str] = []
    if given.get("weigh") == "auto":
        given["weigh"] = _chosen_weights(log, given, target)
        kinds = ",".join(f"{kind}={value}" for kind, value in given["weigh"].items())
        chosen = [f"kinds: {kinds} (chosen on held-out pairs of {target!r})"]
    elif target is not None:
        raise ConfigError("--target needs --weigh auto, which chooses the weights of kinds")
    recipe = Recipe(**given, seed=seed)
    if is_text_folder(log):
        lines, facts = prepare_text_folder(
            log, output, recipe, ordered=ordered, names=items, overwrite=overwrite
        )
    else:
        with show_progress() as progress:
            report = prepare_log(
                log,
                output,
                recipe,
                test=test,
                names=items,
                processes=processes,
                overwrite=overwrite,
                progress=progress,
            )
        lines, facts = [*chosen, *report.lines()], report.to_dict()
    if as_json:
        print_json(facts)
    else:
        print("\n".join(lines))


def _chosen_weights(log: str, given: dict[str, Any], target: str | None) -> dict[str, Any]:
    """What --weigh auto finds."""
    from dataclasses import fields

    from ltocf.data.ingest.recipe import Reading
    from ltocf.search.tuning.kinds import choose_weights

    if log == "-":
        raise ConfigError("--weigh auto reads the log several times: give a file, not -")
    names = {field.name for field in fields(Reading)} - {"weigh"}
    how = Reading(**{name: value for name, value in given.items() if name in names})
    with show_progress() as progress:
        return choose_weights(log, how, target, progress)

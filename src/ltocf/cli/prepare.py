"""ltocf prepare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import Column, Encoding, Header, Repeats, Separator, SkipBad, Weight
from ltocf.cli.output import Json, print_json
from ltocf.progress import show_progress


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
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Ratings from here on are likes. A lower one is kept as seen: it is neither "
            "learned nor recommended."
        ),
    ] = None,
    weight: Weight = None,
    repeats: Repeats = None,
    separator: Separator = None,
    header: Header = None,
    encoding: Encoding = None,
    skip_bad: SkipBad = False,
    min_user: Annotated[int, typer.Option(help="Interactions that a user must have.")] = 1,
    min_item: Annotated[int, typer.Option(help="Interactions that an item must have.")] = 1,
    split: Annotated[
        str, typer.Option(help="How to choose test pairs: ratio, temporal, leave-last-out or none.")
    ] = "ratio",
    ratio: Annotated[float, typer.Option(help="The share of train.")] = 0.8,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="A log of test pairs, instead of a split."),
    ] = None,
    unknown: Annotated[
        str,
        typer.Option(help="Test pairs that train does not know: drop, keep or error."),
    ] = "drop",
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="With a folder of train.txt and test.txt: each line lists a user's items from "
            "the first to the last.",
        ),
    ] = False,
    validation: Annotated[
        float, typer.Option(help="The share of train to hold out, to choose an epoch by.")
    ] = 0.0,
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="A table of items with names to display."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of a random split.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old one.")] = False,
    as_json: Json = False,
) -> None:
    """Turn a log of who touched what into a data set to train on."""
    from ltocf.data.ingest.prepare import Recipe
    from ltocf.data.ingest.prepare import prepare as prepare_log
    from ltocf.data.sources.text_folder import is_text_folder, prepare_text_folder

    recipe = Recipe(
        user=user,
        item=item,
        time=time,
        rating=rating,
        weight=weight,
        repeats=repeats,  # type: ignore[arg-type]  # checked by the recipe, as are the others
        threshold=threshold,
        separator=separator,
        header=header,
        encoding=encoding,
        skip_bad=skip_bad,
        min_user=min_user,
        min_item=min_item,
        split=split,  # type: ignore[arg-type]
        ratio=ratio,
        unknown=unknown,  # type: ignore[arg-type]
        validation=validation,
        seed=seed,
    )
    if is_text_folder(log):
        lines, facts = prepare_text_folder(
            log, output, recipe, ordered=ordered, names=items, overwrite=overwrite
        )
    else:
        with show_progress() as progress:
            report = prepare_log(
                log, output, recipe, test=test, names=items, overwrite=overwrite, progress=progress
            )
        lines, facts = report.lines(), report.to_dict()
    if as_json:
        print_json(facts)
    else:
        print("\n".join(lines))

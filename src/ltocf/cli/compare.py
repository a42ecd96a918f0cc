"""ltocf compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import Overwrite, RunPaths
from ltocf.cli.output import Json, print_beyond, print_json, print_table
from ltocf.progress import show_progress


def compare(
    runs: RunPaths,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", "-k", help="The length of the lists; repeat for more. Default: 20."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare: recall, ndcg, precision, hit, map, mrr or diversity. Repeat it "
            "for more. Default: recall, ndcg."
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=100, help="How many bootstrap samples of the users to draw.")
    ] = 2000,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the differences to a .png, .svg or .pdf file."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the bootstrap.")] = 0,
    average_seeds: Annotated[
        bool,
        typer.Option(
            "--average-seeds",
            help="Count runs that differ in their seed alone as one, by the mean of each user's "
            "metrics, and show the standard deviation over seeds.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Put the test metrics of runs side by side, and say whether differences are due to chance.

    Each run is compared with the first, user by user. The interval is a 95 % bootstrap interval
    over users, and p is the probability of a difference this large by chance alone.
    """
    from ltocf.pictures.style import PICTURES
    from ltocf.storage.files import refuse_file

    if picture is not None:
        refuse_file(picture, overwrite=overwrite, kinds=PICTURES)

    from ltocf.runs.comparison import compare_runs, draw_comparison

    with show_progress() as progress:
        found = compare_runs(
            runs,
            sorted(set(k or [20])),
            metric or ("recall", "ndcg"),
            resamples=resamples,
            seed=seed,
            average_seeds=average_seeds,
            progress=progress,
        )
    if picture is not None:
        draw_comparison(found, picture)
    if as_json:
        print_json(found.to_dict())
        return
    names = list(found.metrics[0])
    columns, rows = ["run", *names], []
    for place, (run, values) in enumerate(zip(found.runs, found.metrics, strict=True)):
        cells = [f"{values[name]:.4f}" for name in names]
        if found.seeds:
            count, spread = found.seeds[place], found.spreads[place]
            if count > 1:  # one seed has no spread, which is not a spread of 0
                cells = [f"{values[name]:.4f} ± {spread[name]:.4f}" for name in names]
            cells = [str(count), *cells]
        rows.append([run, *cells])
    if found.seeds:
        columns.insert(1, "seeds")
    print_table(f"test metrics over {found.users:,} users", columns, rows)
    print_beyond("\nbeyond accuracy", found.runs, found.beyond)
    differences = [
        [
            run,
            row.metric,
            f"{row.difference:+.4f}",
            f"{row.low:+.4f} to {row.high:+.4f}",
            f"{row.p:.4f}",
            f"{row.better:,} : {row.worse:,}",
        ]
        for run, rows in zip(found.runs[1:], found.differences, strict=True)
        for row in rows
    ]
    columns = ["run", "metric", "difference", "95 % interval", "p", "better : worse"]
    print_table(f"\nagainst {found.runs[0]}", columns, differences)
    if picture is not None:
        print(f"drawn in {picture}")

"""ltocf export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import K, Overwrite, RunPath
from ltocf.cli.output import Json, print_json


def export(
    run: RunPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to write.")
    ],
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            help="What to write. Every model has lists and neighbours; a model of vectors also has "
            "parquet and hnsw; ltocf has states; models of vectors and linear models have onnx. "
            "Repeat it for more. Default: parquet.",
        ),
    ] = None,
    k: K = 10,
    csv: Annotated[
        bool, typer.Option("--csv", help="Write lists and neighbours as CSV instead of Parquet.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write lists, neighbours, embeddings, an approximate index, and the scoring as ONNX."""
    from ltocf.recommend.export import MARKER
    from ltocf.recommend.export import export as write
    from ltocf.recommend.recommender import Recommender
    from ltocf.storage.files import refuse_occupied

    refuse_occupied(output, marker=MARKER, overwrite=overwrite)
    recommender, formats = Recommender.load(run), format or ["parquet"]
    report = write(recommender, output, formats, k=k, csv=csv, overwrite=overwrite)
    if as_json:
        print_json(report)
        return
    if "lists" in report:
        print(f"{report['lists']['rows']:,} rows for {report['lists']['users']:,} users")
    if "neighbours" in report:
        found = report["neighbours"]
        print(f"{found['rows']:,} neighbours of {found['items']:,} items")
    if "parquet" in report:
        sizes = report["parquet"]
        print(f"{sizes['users']:,} users and {sizes['items']:,} items of {sizes['dim']} dimensions")
    if "states" in report:
        times = ", ".join(f"{time:.3f}" for time in report["states"]["times"])
        print(f"the states at the times {times}")
    if "hnsw" in report:
        index = report["hnsw"]
        print(f"the index finds {index['recall']:.2%} of the exact top {index['k']}")
    print(f"saved in {output}")

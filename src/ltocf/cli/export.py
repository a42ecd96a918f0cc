"""ltocf export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.options import Overwrite, RunPath
from ltocf.cli.output import Json, print_json


def export(
    run: RunPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to write it.")
    ],
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format", "-f", help="What to write: parquet, hnsw or onnx; repeat for more."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write embeddings as Parquet, an approximate index, and the scoring as ONNX."""
    from ltocf.files import refuse_occupied
    from ltocf.recommend.export import MARKER
    from ltocf.recommend.export import export as write
    from ltocf.recommend.recommender import Recommender

    refuse_occupied(output, marker=MARKER, overwrite=overwrite)
    report = write(Recommender.load(run), output, format or ["parquet"], overwrite=overwrite)
    if as_json:
        print_json(report)
        return
    sizes = report["parquet"]
    print(f"{sizes['users']:,} users and {sizes['items']:,} items of {sizes['dim']} dimensions")
    if "hnsw" in report:
        index = report["hnsw"]
        print(f"the index finds {index['recall']:.2%} of the exact top {index['k']}")
    print(f"saved in {output}")

"""ltocf response"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import say


def response(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run of ltocf or lightgcn. Without one, the solvers are drawn."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf.")
    ] = Path("response.png"),
    residual: Annotated[
        bool, typer.Option("--residual", help="Without a run: use the residual connection.")
    ] = False,
) -> None:
    """Draw the response of a model or of the solvers to each eigenvalue of the graph."""
    from ltocf.pictures.style import PICTURES
    from ltocf.storage.files import refuse_file

    refuse_file(output, overwrite=True, kinds=PICTURES)

    from ltocf.pictures.responses import draw_change, draw_responses, solver_responses
    from ltocf.runs.run import load_run

    if run is None:
        connection = "residual" if residual else "linear"
        responses = solver_responses("residual" if residual else "linear")
        draw_responses(output, responses, title=f"{connection} connection", relative=True)
    else:
        responses = load_run(run)[1].responses()
        draw = draw_change if len(responses) == 2 else draw_responses
        draw(output, responses, title=str(run))
    say(f"wrote {output}")

"""ltocf refit"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltocf.cli.options import Overwrite, RunPath, deployed_path
from ltocf.cli.output import Json, print_json
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.runs.run import Run


def refit(
    run: RunPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="RUN", help="Where the new run goes. Default: RUN-deploy."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a tested run's model again, to all pairs, test included: the model to deploy."""
    from ltocf.runs.run import Run

    opened = Run.open(run)
    deployed = fit_to_everything(opened, output or deployed_path(run), overwrite=overwrite)
    if as_json:
        print_json({"run": str(deployed.path), "pairs": len(deployed.dataset.split.train)})
    else:
        print(deployed_line(deployed))


def fit_to_everything(run: Run, output: Path, *, overwrite: bool) -> Run:
    from ltocf.runs.refit import refit_run

    with show_progress(training="refitting") as progress:
        return refit_run(run, output, overwrite=overwrite, progress=progress)


def deployed_line(run: Run) -> str:
    pairs = len(run.dataset.split.train)
    return f"fitted to all {pairs:,} pairs, saved in {run.path}: the one to deploy"

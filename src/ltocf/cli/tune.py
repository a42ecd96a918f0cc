"""ltocf tune"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table
from ltocf.errors import ConfigError
from ltocf.progress import show_progress


def tune(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET [KEY=VALUE]...", help="The data set, and settings that stay fixed."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where the study goes. Default: runs/DATASET-MODEL-tune.",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="A model that 'ltocf models' lists.")
    ] = "ltocf",
    trials: Annotated[int, typer.Option(min=1, help="How many trials to add to the study.")] = 20,
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space",
            metavar="KEY=VALUES",
            help="A setting to search and its values, as key=low:high or key=a|b|c. Repeat it for "
            "more. By default, the settings that matter most for the model.",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="NAME",
            help="Try every combination of a named grid instead. The grid 'paper' has LT-OCF's "
            "solvers, K, T, learning rates and fixed or learned times, by the paper's recipe. "
            "Settings that you give are fixed.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for good settings on validation pairs. Stop and continue as you like."""
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.runs.settings import make_config
    from ltocf.search.tuning.tune import grid_of
    from ltocf.search.tuning.tune import tune as search

    words = [word for word in arguments if "=" not in word]
    if len(words) != 1:
        raise ConfigError(f"give one data set, got: {', '.join(words) or 'none'}")
    fixed = [word for word in arguments if "=" in word]
    if grid is None:
        config = make_config({"dataset": words[0], "model": {"name": model}}, fixed)
    elif space or model != "ltocf":
        raise ConfigError(
            "--grid is for the model ltocf and defines its own space; leave out --space and --model"
        )
    else:
        config, space = grid_of(grid, words[0], fixed)
    output = output or Path("runs") / f"{Path(words[0]).name}-{model}-tune"
    with show_progress() as progress:
        report = search(
            load_dataset(words[0]),
            config,
            output,
            trials=trials,
            space=space or (),
            exhaustive=grid is not None,
            progress=progress,
        )
    best = output / "best.toml"
    counts = {"trials": report.trials, "pruned": report.pruned, "resumed": report.resumed}
    if as_json:
        settings = report.best.model_dump(exclude_none=True)
        print_json({"recall@20": report.recall, "best": settings, "file": str(best)} | counts)
        return
    rows = [
        [key, f"{v:.4g}" if isinstance(v, float) else str(v)] for key, v in report.found.items()
    ]
    title = f"best of {report.trials} trials ({report.pruned} pruned)"
    if rows:
        print_table(title, ["setting", "value"], rows)
    else:
        print(f"{title}: the settings as they are")
    print(f"validation Recall@20 {report.recall:.4f}\nnext: ltocf train --config {best}")

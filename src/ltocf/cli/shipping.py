"""ltocf update, export, tune"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, metric_text, print_json, print_table, say
from ltocf.cli.output import training_progress as show_training
from ltocf.cli.training import RunPath
from ltocf.errors import ConfigError

Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="Its name, if not guessed.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an old one.")]


def update(
    run: RunPath,
    log: Annotated[Path, typer.Argument(metavar="NEW_LOG", help="CSV, TSV or Parquet.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Default: the run is replaced."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Of the warm fit.")] = 2,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0, help="Of the warm fit. Default: a quarter of the run's."),
    ] = None,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Leave out lower ratings."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="A table of items with names to display."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Add new interactions, users and items to a run, and fit it a little more."""
    from ltocf.checkpoint import Run
    from ltocf.update import update_run

    with show_training(epochs, "updating") as progress:
        updated, added = update_run(
            Run.open(run),
            log,
            output,
            epochs=epochs,
            learning_rate=learning_rate,
            names=items,
            overwrite=overwrite,
            progress=progress,
            user=user,
            item=item,
            time=time,
            rating=rating,
            threshold=threshold,
        )
    metrics = updated.metrics()
    if as_json:
        print_json({"run": str(updated.path), "added": asdict(added), "metrics": metrics})
        return
    print(
        f"added {added.interactions:,} interactions, {added.users:,} users and "
        f"{added.items:,} items; {added.repeated:,} were there already"
    )
    if metrics:
        print(f"test  {metric_text(metrics)}")
    print(f"saved in {updated.path}")


def export(
    run: RunPath,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR")],
    format: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help="parquet, hnsw or onnx; repeat for more."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Embeddings as Parquet, an approximate index, and the scoring as ONNX."""
    from ltocf.export import export as write
    from ltocf.recommend import Recommender

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


def tune(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET [KEY=VALUE]...", help="The data set, and settings that stay fixed."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Default: runs/DATASET-MODEL-tune."),
    ] = None,
    model: Annotated[str, typer.Option("--model", help="See 'ltocf models'.")] = "ltocf",
    trials: Annotated[int, typer.Option(min=1, help="To add to the study.")] = 20,
    space: Annotated[
        list[str] | None,
        typer.Option("--space", help="key=low:high or key=a|b|c; repeat. Default: the usual."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for good settings on a validation cut; stop and start again as you like."""
    from ltocf.config import make_config
    from ltocf.data.catalog import load_dataset
    from ltocf.tune import tune as search

    words = [word for word in arguments if "=" not in word]
    if len(words) != 1:
        raise ConfigError(f"give one data set, got: {', '.join(words) or 'none'}")
    fixed = [word for word in arguments if "=" in word]
    config = make_config({"dataset": words[0], "model": {"name": model}}, fixed)
    output = output or Path("runs") / f"{Path(words[0]).name}-{model}-tune"
    report = search(
        load_dataset(words[0]),
        config,
        output,
        trials=trials,
        space=space or (),
        progress=_say_trial,
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
    print_table(title, ["setting", "value"], rows)
    print(f"validation Recall@20 {report.recall:.4f}\nnext: ltocf train --config {best}")


def _say_trial(done: int, total: int, best: float | None) -> None:
    say(f"trial {done}/{total}" + ("" if best is None else f"  best Recall@20 {best:.4f}"))

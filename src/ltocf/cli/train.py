"""ltocf train"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, say, show_progress
from ltocf.errors import ConfigError


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATASET] [KEY=VALUE]...",
            help="town, gowalla, yelp2018, amazon-book or a directory made by 'ltocf prepare'; "
            "settings such as epochs=20 dim=32 solver=euler.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Default: runs/DATASET-MODEL."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="See 'ltocf models', or 'auto'. Default: ltocf."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE|NAME",
            help="Settings as TOML: a file, or the name of one that 'ltocf configs' lists.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(min=0, help="With --model auto: seconds to compare models for.")
    ] = 300,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old run.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model and test it once; everything goes into a run directory."""
    from ltocf.config import find_config
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.data.sources.text_folder import dropped_line
    from ltocf.runs.automatic import settle
    from ltocf.runs.pipeline import start_run, train_run
    from ltocf.runs.records import metric_text
    from ltocf.runs.run import Run
    from ltocf.runs.settings import make_config, parse_overrides, read_config

    words = [word for word in arguments or [] if "=" not in word]
    overrides = parse_overrides(word for word in arguments or [] if "=" in word)
    if len(words) > 1:
        raise ConfigError(f"one data set at a time, got: {', '.join(words)}")
    overrides |= {"dataset": words[0]} if words else {}
    overrides |= {"model": model} if model else {}
    if resume:
        if output is None or overrides or config:
            raise ConfigError("--resume takes the run's own settings: ltocf train --resume -o RUN")
        run = Run.open(output)
    else:
        given = read_config(find_config(config), overrides) if config else None
        settings = given or make_config({}, overrides)
        name = Path(settings.dataset).name
        output = output or Path("runs") / f"{name}-{settings.model_name}"
        dataset = load_dataset(settings.dataset)
        if dataset.split.dropped:
            say(dropped_line(dataset.split.dropped))
        if settings.model_name == "auto":
            settings = settle(settings, dataset.split, budget, say)
        run = start_run(settings, output, dataset=dataset, overwrite=overwrite)
    try:
        with show_progress() as progress:
            metrics = train_run(run, progress)
    except KeyboardInterrupt:
        say(f"\nstopped; finished epochs are kept. Continue with: ltocf train --resume -o {output}")
        raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(output), "metrics": metrics})
    else:
        print(f"test  {metric_text(metrics)}" if metrics else "no test pairs: nothing to measure")
        curves = output / "curves.png"
        print(f"saved in {output}" + (f" (curves in {curves})" if curves.exists() else ""))

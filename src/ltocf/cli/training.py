"""ltocf train, evaluate, models"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, counting_progress, metric_text, print_json, print_table, say
from ltocf.cli.output import training_progress as show_training
from ltocf.errors import ConfigError

RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory.", show_default=False)
]


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
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Settings as TOML."),
    ] = None,
    budget: Annotated[
        float, typer.Option(min=0, help="With --model auto: seconds to compare models for.")
    ] = 300,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old run.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model and test it once; everything goes into a run directory."""
    from ltocf.automatic import settle
    from ltocf.checkpoint import Run
    from ltocf.config import make_config, read_config
    from ltocf.data.catalog import load_dataset
    from ltocf.pipeline import start_run, train_run

    words = [word for word in arguments or [] if "=" not in word]
    overrides = [word for word in arguments or [] if "=" in word]
    if len(words) > 1:
        raise ConfigError(f"one data set at a time, got: {', '.join(words)}")
    overrides += [f'dataset="{word}"' for word in words]
    overrides += [f'model="{model}"'] if model else []
    if resume:
        if output is None or overrides or config:
            raise ConfigError("--resume takes the run's own settings: ltocf train --resume -o RUN")
        run = Run.open(output)
    else:
        settings = read_config(config, overrides) if config else make_config({}, overrides)
        name = Path(settings.dataset).name
        output = output or Path("runs") / f"{name}-{settings.model_name}"
        dataset = load_dataset(settings.dataset)
        if settings.model_name == "auto":
            settings = settle(settings, dataset.split, budget, say)
        run = start_run(settings, output, dataset=dataset, overwrite=overwrite)
    try:
        with show_training(run.config.train.epochs) as progress:
            metrics = train_run(run, progress)
    except KeyboardInterrupt:
        say(f"\nstopped; finished epochs are kept. Continue with: ltocf train --resume -o {output}")
        raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(output), "metrics": metrics})
    else:
        print(f"test  {metric_text(metrics)}")
        print(f"saved in {output} (curves in {output / 'curves.png'})")


def evaluate(
    run: RunPath,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="List length; may be given more than once. Default: 10 20 50."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test metrics of a run: every unseen item is a candidate."""
    from ltocf.checkpoint import Run
    from ltocf.pipeline import TEST_KS, test
    from ltocf.ranking import check_k

    opened = Run.open(run)
    ks = sorted(set(k or TEST_KS))
    if k:
        check_k(ks[0], opened.dataset.split.train.n_items)
        check_k(ks[-1], opened.dataset.split.train.n_items)
    with counting_progress("ranking") as progress:
        metrics = test(opened, opened.load(), ks, progress)
    if as_json:
        print_json(metrics)
        return
    names = list(dict.fromkeys(name.partition("@")[0] for name in metrics))
    rows = [[str(cut), *(f"{metrics[f'{name}@{cut}']:.4f}" for name in names)] for cut in ks]
    print_table(f"test metrics of {run}", ["k", *names], rows)


def models(as_json: Json = False) -> None:
    """What --model takes, and the settings of each."""
    from ltocf.models import MODELS

    settings = {name: kind.Config().model_dump(mode="json") for name, kind in MODELS.items()}
    if as_json:
        print_json(settings)
        return
    for name, kind in MODELS.items():
        first_line = (kind.__doc__ or "").strip().splitlines()[0]
        print(f"{name}: {first_line}")
        if settings[name]:
            print("    " + "  ".join(f"{key}={value}" for key, value in settings[name].items()))

"""ltocf train"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.evaluate import NOTHING_TO_TEST
from ltocf.cli.options import owns_the_output, process_count
from ltocf.cli.output import Json, print_json, print_table, say
from ltocf.cli.refit import deployed_line, deployed_path, fit_to_everything
from ltocf.errors import ConfigError, RunError
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.config import RunConfig
    from ltocf.data.dataset import Dataset
    from ltocf.runs.automatic import Choice

WHAT_TO_DO = (
    "say what to learn from: a log of your own (ltocf train LOG.csv), a data set that 'ltocf "
    "prepare' made, a name from 'ltocf datasets', or 'town' to try it (ltocf train town)"
)


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET [KEY=VALUE]...",
            help="A directory made by 'ltocf prepare', a log such as visits.csv, or a name: town, "
            "gowalla, yelp2018 or amazon-book; and settings such as epochs=20 dim=32 solver=euler.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="RUN", help="Where the run goes. Default: runs/DATASET-MODEL."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="One that 'ltocf models' lists, or auto. Default: ltocf."),
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
    deploy: Annotated[
        bool,
        typer.Option(
            "--deploy",
            "--refit",
            help="Then fit the chosen model to all pairs, test included, as 'ltocf refit' does; it "
            "goes to RUN-deploy.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old run.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model and test it once; everything goes into a run directory."""
    from ltocf.runs.settings import parse_overrides
    from ltocf.runs.versions import MARKER

    if deploy and process_count() > 1:
        raise ConfigError("--deploy is for one process; run 'ltocf refit' after the training")

    words = [word for word in arguments or [] if "=" not in word]
    overrides = parse_overrides(word for word in arguments or [] if "=" in word)
    if len(words) > 1:
        raise ConfigError(f"one data set at a time, got: {', '.join(words)}")
    overrides |= {"dataset": words[0]} if words else {}
    overrides |= {"model": model} if model else {}
    choice: Choice | None = None
    if resume:
        if output is None or overrides or config:
            raise ConfigError("--resume takes the run's own settings: ltocf train --resume -o RUN")
    else:
        if output is not None:  # before the settings, which take torch to be checked
            _refuse_occupied(output, deploy=deploy, overwrite=overwrite)
        settings = _settings(overrides, config)
        if output is None:
            output = Path("runs") / f"{Path(settings.dataset).stem}-{settings.model_name}"
            _refuse_occupied(output, deploy=deploy, overwrite=overwrite)

    from ltocf.distributed import restarted
    from ltocf.runs.pipeline import start_run, train_run
    from ltocf.runs.records import metric_text
    from ltocf.runs.run import Run
    from ltocf.runs.yardsticks import compare, verdict

    if resume or (restarted() and (output / MARKER).is_file()):  # a process had died: go on
        run = Run.open(output)
    else:
        settings, dataset, choice = _with_data(settings, output, budget)
        run = start_run(settings, output, dataset=dataset, overwrite=overwrite)
        if choice is not None:
            run.save_comparison(choice.as_json())
    try:
        with show_progress() as progress:
            metrics = train_run(run, progress)
    except KeyboardInterrupt:
        say(f"\nstopped; finished epochs are kept. Continue with: ltocf train --resume -o {output}")
        raise typer.Exit(130) from None
    with show_progress() as progress:
        others = compare(run, progress)
    where = deployed_path(output)
    deployed = fit_to_everything(run, where, overwrite=overwrite) if deploy else None
    if as_json:
        also: dict[str, Any] = {} if deployed is None else {"deployed": str(where)}
        also |= {"tried": choice.as_json()} if choice else {}
        print_json({"run": str(output), "metrics": metrics, "others": others} | also)
        return
    if choice is not None:
        print_table("what was tried, on validation", *choice.table())
    print(f"test  {metric_text(metrics)}" if metrics else NOTHING_TO_TEST)
    if others:
        print(verdict(metrics, others))
    curves = output / "curves.png"
    print(f"saved in {output}" + (f" (curves in {curves})" if curves.exists() else ""))
    if deployed is not None:
        print(deployed_line(deployed))


def _settings(overrides: dict[str, Any], config: str | None) -> RunConfig:
    from ltocf.config import find_config, read_toml

    values = {} if config is None else read_toml(find_config(config))
    if "dataset" not in values and "dataset" not in overrides:
        raise ConfigError(WHAT_TO_DO)

    from ltocf.runs.settings import make_config

    return make_config(values, overrides)


def _refuse_occupied(output: Path, *, deploy: bool, overwrite: bool) -> None:
    from ltocf.files import refuse_occupied
    from ltocf.runs.versions import MARKER

    if not owns_the_output():  # it is these processes' own run that is there
        return
    for path in [output, *([deployed_path(output)] if deploy else [])]:
        refuse_occupied(path, marker=MARKER, overwrite=overwrite, error=RunError)


def _with_data(
    settings: RunConfig, output: Path, budget: float
) -> tuple[RunConfig, Dataset, Choice | None]:
    """The data set, and the settings with the model that `auto` chose."""
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.data.sources.raw_log import dataset_beside, is_raw_log
    from ltocf.data.sources.text_folder import dropped_line

    if process_count() > 1 and (is_raw_log(settings.dataset) or settings.model_name == "auto"):
        raise ConfigError(
            "a raw log and --model auto are for one process; run 'ltocf prepare' and name a model"
        )
    if is_raw_log(settings.dataset):
        with show_progress() as progress:
            path, lines = dataset_beside(settings.dataset, output.parent, progress)
        say("\n".join(lines))
        settings = settings.model_copy(update={"dataset": str(path)})
    dataset = load_dataset(settings.dataset)
    if dataset.split.dropped:
        say(dropped_line(dataset.split.dropped))
    choice = _choose(settings, dataset, budget) if settings.model_name == "auto" else None
    return choice.config if choice else settings, dataset, choice


def _choose(settings: RunConfig, dataset: Dataset, budget: float) -> Choice:
    from ltocf.runs.automatic import choose_model

    try:
        with show_progress() as progress:
            return choose_model(settings, dataset.split, budget, progress)
    except KeyboardInterrupt:
        say(
            "\nstopped before a model was chosen, and nothing was kept. Start again with the same "
            "command, with a smaller --budget, or with the best so far as --model"
        )
        raise typer.Exit(130) from None

"""ltocf train"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltocf.cli.evaluate import NOTHING_TO_TEST
from ltocf.cli.log_options import READING, SPLITTING, with_log_options
from ltocf.cli.options import deployed_path, owns_the_output, process_count
from ltocf.cli.output import Json, print_json, say
from ltocf.cli.refit import deployed_line, fit_to_everything
from ltocf.cli.searching import search
from ltocf.errors import ConfigError, RunError
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.config import RunConfig

SEARCH = "auto"  # stands where a model's name would, and asks for a search
WHAT_TO_DO = (
    "say what to learn from: a log of your own (ltocf train LOG.csv), a data set that 'ltocf "
    "prepare' made, a name from 'ltocf datasets', or 'town' to try it (ltocf train town)"
)


@with_log_options(READING, SPLITTING)
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
            "--output",
            "-o",
            metavar="RUN",
            help="Where the run goes. Default: runs/DATASET, or runs/DATASET-MODEL.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Fit this model of 'ltocf models', such as ltocf. Default: search for the best.",
        ),
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
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long to search: 90 (seconds), 10m or 1h. The default grows with the data.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="time|none",
            help="With a folder of train.txt and test.txt: whether its lines list items from the "
            "earliest to the latest. By default it is detected.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run, or a search.")
    ] = False,
    deploy: Annotated[
        bool,
        typer.Option(
            "--deploy",
            "--refit",
            help="Then fit the chosen model to all pairs, test included, as 'ltocf refit' does. It "
            "is saved in RUN-deploy.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing run.")
    ] = False,
    as_json: Json = False,
    *,
    given: dict[str, Any],
) -> None:
    """Find the best model for a log, or train one by name, and test it once. Everything is saved in
    a run directory. A search always has its best model so far saved: stop it whenever you like."""
    from ltocf.data.sources.text_folder import ordered_by
    from ltocf.deadlines import parse_seconds
    from ltocf.runs.settings import parse_overrides
    from ltocf.search.process.job import is_search

    began = time.time()
    if deploy and process_count() > 1:
        raise ConfigError(
            "--deploy does not work under torchrun; run 'ltocf refit' after the training"
        )
    seconds = None if budget is None else parse_seconds(budget)
    ordered_by(order)  # called for its check: a bad --order is refused before any work
    words = [word for word in arguments or [] if "=" not in word]
    overrides = parse_overrides(word for word in arguments or [] if "=" in word)
    if len(words) > 1:
        raise ConfigError(f"give one data set, got: {', '.join(words)}")
    overrides |= {"dataset": words[0]} if words else {}
    overrides |= {"model": model} if model else {}
    if resume:
        if output is None or overrides or config or given:
            raise ConfigError(
                "--resume uses the settings that the run was started with; give only its "
                "directory: ltocf train --resume -o RUN"
            )
        if is_search(output):
            search(None, output, began, seconds, None, overwrite, deploy, as_json)
            return
        _fit(None, output, overwrite, deploy, as_json)
        return
    if output is not None:  # before the settings: to check them may take loading torch
        _refuse_occupied(output, deploy=deploy, overwrite=overwrite)
    settings = _settings(overrides, config)
    searches = settings.model_name == SEARCH
    if output is None:
        stem = Path(settings.dataset).stem
        output = Path("runs") / (stem if searches else f"{stem}-{settings.model_name}")
        _refuse_occupied(output, deploy=deploy, overwrite=overwrite)
    settings = _prepared(settings, output, given)
    if searches:
        search(settings, output, began, seconds, order, overwrite, deploy, as_json)
    else:
        _fit(settings, output, overwrite, deploy, as_json, order)


def _settings(overrides: dict[str, Any], config: str | None) -> RunConfig:
    from ltocf.config import find_config, read_toml

    values = {} if config is None else read_toml(find_config(config))
    if "dataset" not in values and "dataset" not in overrides:
        raise ConfigError(WHAT_TO_DO)

    from ltocf.runs.settings import make_config

    if "name" not in values.get("model", {}):
        overrides = {"model": SEARCH} | overrides
    return make_config(values, overrides)


def _refuse_occupied(output: Path, *, deploy: bool, overwrite: bool) -> None:
    from ltocf.runs.versions import MARKER, unfinished
    from ltocf.storage.files import refuse_occupied

    if not owns_the_output():  # what is there is the run of these very processes
        return
    if not overwrite and unfinished(output):
        raise RunError(
            f"{output}: holds an unfinished run; continue it (ltocf train --resume -o {output}), "
            "choose another output, or replace it (--overwrite)"
        )
    for path in [output, *([deployed_path(output)] if deploy else [])]:
        refuse_occupied(path, marker=MARKER, overwrite=overwrite, error=RunError)


def _prepared(settings: RunConfig, output: Path, given: dict[str, Any]) -> RunConfig:
    """The settings, with a log replaced by the data set that was prepared from it."""
    from ltocf.data.sources.catalog import dataset_beside, is_raw_log, refuse_unknown

    raw = is_raw_log(settings.dataset)
    if process_count() > 1 and (raw or settings.model_name == SEARCH):
        raise ConfigError(
            "torchrun can start neither a search nor the training on a raw log; run 'ltocf "
            "prepare' first and name a model (--model)"
        )
    if not raw:
        refuse_unknown(settings.dataset)
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise ConfigError(
                f"{flag} says how to read a log, but {settings.dataset!r} is an already prepared "
                f"data set; leave {flag} out"
            )
        return settings
    with show_progress() as progress:
        path, lines = dataset_beside(settings.dataset, output.parent, progress, given)
    say("\n".join(lines))
    return settings.model_copy(update={"dataset": str(path)})


def _fit(
    settings: RunConfig | None,
    output: Path,
    overwrite: bool,
    deploy: bool,
    as_json: bool,
    order: str | None = None,
) -> None:
    """Train the model that the settings name, or continue the run at `output`."""
    from ltocf.distributed import restarted
    from ltocf.runs.pipeline import start_run, stopped_line, train_run
    from ltocf.runs.run import Run
    from ltocf.runs.versions import MARKER
    from ltocf.runs.yardsticks import compare, verdict
    from ltocf.training.records import metric_text

    # torchrun restarts all processes after one died; the run at `output` is then their own.
    if settings is None or (restarted() and (output / MARKER).is_file()):
        run = Run.open(output)
    else:
        run = start_run(settings, output, dataset=_loaded(settings, order), overwrite=overwrite)
    try:
        with show_progress() as progress:
            metrics = train_run(run, progress)
    except KeyboardInterrupt:
        say(f"\n{stopped_line(run)}")
        raise typer.Exit(130) from None
    with show_progress() as progress:
        others = compare(run, progress)
    where = deployed_path(output)
    deployed = fit_to_everything(run, where, overwrite=overwrite) if deploy else None
    if as_json:
        also: dict[str, Any] = {} if deployed is None else {"deployed": str(where)}
        print_json({"run": str(output), "metrics": metrics, "others": others} | also)
        return
    print(f"test  {metric_text(metrics)}" if metrics else NOTHING_TO_TEST)
    if others:
        print(verdict(metrics, others))
    curves = output / "curves.png"
    print(f"saved in {output}" + (f" (curves in {curves})" if curves.exists() else ""))
    if deployed is not None:
        print(deployed_line(deployed))


def _loaded(settings: RunConfig, order: str | None) -> Any:
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.data.sources.text_folder import dropped_line, order_line, ordered_by

    dataset = load_dataset(settings.dataset, ordered=ordered_by(order))
    if line := order_line(dataset):
        say(line)
    if dataset.split.dropped:
        say(dropped_line(dataset.split.dropped))
    return dataset

"""Fit the chosen model to all pairs, test pairs included, to deploy it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ltocf.data.ingest.growth import with_every_pair
from ltocf.errors import ConfigError, RunError
from ltocf.progress import Progress, silent
from ltocf.runs.pipeline import starting_point
from ltocf.runs.run import Run, as_run
from ltocf.runs.versions import MARKER
from ltocf.storage.files import refuse_occupied
from ltocf.training.fitting import fit_for, is_solved
from ltocf.training.records import best_epoch


def refit_run(
    run: Run | str | Path,
    output: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Run:
    """Fit the run's model again, to all pairs of its data set, and save it in `output`.

    It learns from train, validation and test pairs, for as long as the run chose. Items that a user
    has seen, test pairs and unliked items included, are left out of their lists. No pairs are left
    to test it on, so its data set records the metrics of the run that it comes from.
    """
    run, output = as_run(run), Path(output)
    if output.resolve() == run.path.resolve():
        raise ConfigError(
            f"{output}: is the run itself, whose test metrics a refit would invalidate; choose "
            "another output"
        )
    if not run.finished:
        raise RunError(
            f"{run.path}: training has not finished; continue it (ltocf train --resume) before "
            "refitting"
        )
    refuse_occupied(output, marker=MARKER, overwrite=overwrite, error=RunError)
    epochs = best_epoch(run.history())
    about = {"run": str(run.path), "epochs": epochs, "metrics": run.metrics()}
    dataset = replace(with_every_pair(run.dataset), origin={**run.dataset.origin, "refit": about})
    schedule = run.config.train.model_copy(update={"protocol": "fixed"})
    config = run.config.model_copy(update={"train": schedule})
    planned = config.train.epochs_for(run.dataset.split.seen.pairs_per_user)
    chosen = config.train.whole_schedule(planned if epochs is None else epochs, planned)
    # `like` takes over what the run learned, such as times, as `fit` does for its second half.
    model = fit_for(
        chosen,
        dataset,
        config,
        like=None if is_solved(config) else run.load(),
        start=starting_point(run.config, run.dataset),
        progress=progress,
    ).model
    return Run.store(output, config, dataset, model, {}, overwrite=overwrite)

"""The road from measured to deployed: the chosen model on all pairs, test included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.splits import all_in_train
from ltocf.errors import ConfigError, RunError
from ltocf.files import refuse_occupied
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.runs.fitting import build, require_room
from ltocf.runs.pipeline import starting_point
from ltocf.runs.records import SELECT_BY, EpochRecord
from ltocf.runs.run import Run
from ltocf.runs.training import train
from ltocf.runs.versions import MARKER


def refit_run(
    run: Run, output: Path, *, overwrite: bool = False, progress: Progress = silent
) -> Run:
    """The run's model fitted anew to everything that the run's data set knows, in `output`.

    It learns from train, validation and test pairs, for as long as the run chose. What a
    user has met is in the seen mask, test pairs and what they did not like among it. Nothing is
    left to test it on, so the metrics of the run that it comes from stay with its data set.
    """
    if output.resolve() == run.path.resolve():
        raise ConfigError(f"{output}: is the run itself, which is what was measured; name another")
    if not run.finished:
        raise RunError(
            f"{run.path}: training has not ended; continue it (ltocf train --resume) before "
            "refitting it"
        )
    refuse_occupied(output, marker=MARKER, overwrite=overwrite, error=RunError)
    epochs = chosen_epochs(run.history())
    about = {"run": str(run.path), "epochs": epochs, "metrics": run.metrics()}
    dataset = replace(
        run.dataset,
        split=all_in_train(run.dataset.split),
        origin={**run.dataset.origin, "refit": about},
    )
    schedule = run.config.train.model_copy(update={"protocol": "fixed"})
    config = run.config.model_copy(update={"train": schedule})
    model = _fitted(run, dataset, config, epochs, progress)
    return Run.store(output, config, dataset, model, {}, overwrite=overwrite)


def _fitted(
    run: Run, dataset: Dataset, config: RunConfig, epochs: int | None, progress: Progress
) -> Model:
    """As `fit` goes from train and validation to all pairs: with the depth that was chosen, for as
    long."""
    model = build(config, dataset)
    require_room(model)
    model.solve_(config.seed)
    if not model.trained:
        return model
    seen = run.dataset.split.seen
    model.carry_(run.load())
    begin = starting_point(run.config, run.dataset) or (lambda model: model.draw_(config.seed))
    begin(model)
    planned = config.train.epochs_for(seen.pairs_per_user)
    chosen = config.train.whole_schedule(planned if epochs is None else epochs, planned)
    schedule = config.train.model_copy(update={"epochs": chosen})
    train(model, schedule, config.loss, seed=config.seed, progress=progress)
    return model


def chosen_epochs(history: list[EpochRecord]) -> int | None:
    """The epoch that validation liked best, or the last; none where nothing was recorded."""
    measured = [record for record in history if record.metrics]
    if measured:
        return max(measured, key=lambda record: record.metrics[SELECT_BY]).epoch
    return history[-1].epoch if history else None

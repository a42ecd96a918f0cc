"""From settings to a finished run: data -> fit -> test -> run directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.sources.catalog import load_dataset
from ltocf.distributed import is_first, wait
from ltocf.errors import ConfigError, RunError
from ltocf.models.base import Model
from ltocf.pictures.curves import draw_curves
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.run import Run, load_run
from ltocf.runs.versions import MARKER
from ltocf.scorers.complete import complete
from ltocf.storage.files import refuse_occupied
from ltocf.training.fitting import build, cut_for, fit, require_room
from ltocf.training.protocol import list_lengths, question
from ltocf.training.records import EpochRecord, TrainState, with_record


def start_run(
    config: RunConfig, output: Path, *, dataset: Dataset | None = None, overwrite: bool = False
) -> Run:
    """A run directory with everything checked and nothing trained."""
    if is_first():  # to other processes, the run that the first one just made would seem occupied
        refuse_occupied(output, marker=MARKER, overwrite=overwrite, error=RunError)
    dataset = cut_for(config, dataset or load_dataset(config.dataset))
    # A wrong setting must fail before anything is written.
    model = build(config, dataset)
    require_room(model)
    model.columns.check(type(model).__name__)  # that as many processes as there are can train it
    if (start := starting_point(config, dataset)) is not None:
        start(model)
    if is_first():
        run = Run.create(output, config, dataset, overwrite=overwrite)
    wait()
    if not is_first():
        run = Run(output, config, dataset)
    run.model = model
    return run


def starting_point(config: RunConfig, dataset: Dataset) -> Callable[[Model], None] | None:
    """A function that starts a model from the vectors of the run at `config.start_from`, if that is
    set. That run must have learned from the same training pairs: one that has learned from more
    would leak the pairs that are held out here into the new model."""
    if config.start_from is None:
        return None
    run, model = load_run(Path(config.start_from))
    ours = cut_for(config, dataset).split.train
    theirs = run.learned_from
    same_ids = theirs.user_ids == ours.user_ids and theirs.item_ids == ours.item_ids
    if not same_ids or theirs.fingerprint != ours.fingerprint:
        raise ConfigError(
            f"start_from = {config.start_from!r} was trained on other pairs; train it on the same "
            "data set with refit=false or protocol=fixed, and both with the same seed"
        )
    weights = model.fitted_state()

    def start(model: Model) -> None:
        model.draw_(config.seed)
        model.start_from_(weights)

    return start


def train_run(run: Run, progress: Progress = silent, *, curves: bool = True) -> Metrics:
    """Train the run to its end, from wherever it stands, test it once, and save everything; without
    `curves`, all but the picture."""
    with run.writing() if is_first() else nullcontext():
        return _train(run, progress, curves)


def stopped_line(run: Run) -> str:
    """The message about an interrupted training: what is saved, and how to continue."""
    state = run.load_state()
    kept = "no epoch was finished yet"
    if state is not None and state.stage == "all pairs":
        kept = f"epoch {state.epoch} of the training on all pairs is kept"
    elif state is not None:
        kept = f"epoch {state.epoch} is kept" if state.epoch else "the times found so far are kept"
    return f"stopped; {kept}. Continue with 'ltocf train --resume -o {run.path}'"


def _train(run: Run, progress: Progress, curves: bool) -> Metrics:
    if run.finished:
        run.forget_state()  # a killed process may have left its state behind
        raise RunError(f"{run.path}: already finished; nothing to resume")
    state = run.load_state()
    records = run.history()
    if state is None or state.stage == "times":
        records = []
    elif state.stage == "choosing":
        records = records[: state.epoch]

    def after_epoch(state: TrainState, record: EpochRecord) -> None:
        nonlocal records
        if state.stage == "choosing":  # the history is that of the training that chose the epoch
            records = with_record(records, record)
        if not is_first():
            return
        # The history comes first: a resumed run cuts it to the epochs of its state, so one record
        # too many does no harm, but one too few would be missing.
        run.save_history(records)
        run.save_state(state)

    fitted = fit(
        run.dataset,
        run.config,
        start=starting_point(run.config, run.dataset),
        state=state,
        progress=progress,
        after_epoch=after_epoch,
    )
    metrics = test(run, fitted.model, progress=progress)
    if is_first():
        if records and curves:
            draw_curves(records, run.path / "curves.png")
        run.finish(fitted.model, metrics)
    return metrics


def test(
    run: Run,
    model: Model,
    ks: Sequence[int] = (),
    progress: Progress = silent,
) -> Metrics:
    """Test metrics of a run's model; empty if there are no test pairs. Items that a user has in
    train or validation are not ranked."""
    split = run.dataset.split
    if not len(split.test):
        return {}
    likeness = run.dataset.catalogue.likeness
    asked = question(complete(model.scorer(), model.people), split)
    ks = ks or list_lengths(split)
    return evaluate(*asked, ks, likeness=likeness, progress=progress)

"""fit(): the one way from data and settings to a fitted model.

`choose_epochs` trains on some of the pairs and chooses the epoch on the others; `fit_for` then
learns from all pairs for as long. A closed form has nothing to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.memory import require_memory
from ltocf.models import MODELS, build_model, check_settings
from ltocf.models.base import Model
from ltocf.progress import OutOfTime, Progress, silent
from ltocf.training.protocol import everything, with_validation
from ltocf.training.records import AfterEpoch, EpochRecord, TrainState
from ltocf.training.training import train
from ltocf.training.weighing import weigh_

Start = Callable[[Model], None]  # sets the parameters that training begins with
FEWEST_PAIRS = 500  # that times learn on: with fewer held-out pairs, the times overfit them


def ignored(state: TrainState, record: EpochRecord) -> None:
    pass


@dataclass(frozen=True)
class Fit:
    """A fitted model, the data as they were split for it, and how training went."""

    model: Model
    dataset: Dataset
    records: list[EpochRecord]  # of the training that chose the epoch
    epochs: int | None  # how long to train on all pairs; None for a closed form
    complete: bool = True  # False if it ran out of time


def fit(
    dataset: Dataset,
    config: RunConfig,
    *,
    start: Start | None = None,
    state: TrainState | None = None,
    progress: Progress = silent,
    after_epoch: AfterEpoch = ignored,
) -> Fit:
    """Fit the model that `config` describes to `dataset`. If the data set has no validation pairs,
    some are split off.

    For a trained model, validation chooses the best epoch, and the times if those learn on held-out
    pairs. With `refit` the model is then trained from scratch on all pairs but test, for as long.
    `start` sets the parameters that training begins with, which are drawn at random otherwise.
    `state`, as `after_epoch` received it, continues an interrupted fit. If `progress` raises
    OutOfTime, the model of the best epoch so far is returned. If there is none yet, or the model is
    a closed form, OutOfTime reaches the caller.
    """
    dataset = cut_for(config, dataset)
    if is_solved(config):
        return fit_for(None, dataset, config, progress=progress)
    then_all = config.train.refit and held_out_of(config, dataset.split) is not None
    on_all = then_all and config.train.protocol == "validation"
    if on_all and state is not None and state.stage == "all pairs":
        return fit_for(
            state.epochs, dataset, config,
            start=start, state=state, progress=progress, after_epoch=after_epoch,
        )  # fmt: skip
    chosen = choose_epochs(
        dataset, config, start=start, state=state, progress=progress, after_epoch=after_epoch
    )
    if not on_all or not chosen.complete:
        return chosen
    whole = fit_for(
        chosen.epochs, dataset, config,
        like=chosen.model, start=start, progress=progress, after_epoch=after_epoch,
    )  # fmt: skip
    best = whole if whole.complete else chosen
    return replace(best, records=chosen.records, complete=whole.complete)


def choose_epochs(
    dataset: Dataset,
    config: RunConfig,
    *,
    start: Start | None = None,
    state: TrainState | None = None,
    progress: Progress = silent,
    after_epoch: AfterEpoch = ignored,
) -> Fit:
    """The first half: fit to the training pairs alone, choose the epoch and the times on held-out
    pairs, and decide how long to train on all pairs."""
    if config.train.protocol == "validation":
        dataset = replace(dataset, split=with_validation(dataset.split, config.train, config.seed))
    split = dataset.split
    model = _solved(config, split.train, progress)
    if is_solved(config):
        return Fit(model, dataset, [], None)
    planned = config.train.epochs_for(split.seen.pairs_per_user)
    lesson: Interactions | None = None
    if start is None and config.train.protocol == "validation":
        lesson = split.valid if len(split.valid) >= FEWEST_PAIRS else None
    elif start is None and (state is None or state.stage == "times"):
        _learn_on_a_cut_(model, config, split, state, progress, after_epoch)
        state = None
    if state is None:
        (start or (lambda model: model.draw_(config.seed)))(model)
    training = train(
        model,
        config.train.model_copy(update={"epochs": planned}),
        config.loss,
        seed=config.seed,
        held_out=held_out_of(config, split),
        lesson=lesson,
        state=state,
        progress=progress,
        after_epoch=after_epoch,
    )
    complete = training.complete
    if complete and config.train.protocol == "validation" and len(split.valid):
        try:
            weigh_(model, split.valid, config.seed, progress)
        except OutOfTime:
            complete = False
    epochs = config.train.whole_schedule(training.best_epoch, planned)
    return Fit(model, dataset, training.records, epochs, complete)


def fit_for(
    epochs: int | None,
    dataset: Dataset,
    config: RunConfig,
    *,
    like: Model | None = None,
    start: Start | None = None,
    state: TrainState | None = None,
    progress: Progress = silent,
    after_epoch: AfterEpoch = ignored,
) -> Fit:
    """The second half: fit to all pairs but those of test, for the given number of epochs.

    `like` is a model with these settings that was fitted to fewer pairs. What it learned that holds
    for all pairs, such as times, is taken over.
    """
    model = _solved(config, dataset.split.seen, progress)
    if is_solved(config) or epochs is None:
        return Fit(model, dataset, [], None)
    if like is not None:
        model.take_learned_from_(like)
    if state is None:
        (start or (lambda model: model.draw_(config.seed)))(model)
    training = train(
        model,
        config.train.model_copy(update={"epochs": epochs}),
        config.loss,
        seed=config.seed,
        state=state,
        stage="all pairs",
        shown_as="training on all pairs",
        progress=progress,
        after_epoch=after_epoch,
    )
    return Fit(model, dataset, training.records, epochs, training.complete)


def cut_for(config: RunConfig, dataset: Dataset) -> Dataset:
    """The data set with validation pairs to choose the epoch by; if nothing needs choosing, as for
    a closed form, with validation pairs returned to train."""
    chooses = config.train.protocol == "validation" and not is_solved(config)
    split = dataset.split
    cut = with_validation(split, config.train, config.seed) if chooses else everything(split)
    return replace(dataset, split=cut)


def held_out_of(config: RunConfig, split: Split) -> Interactions | None:
    """The pairs that choose the epoch: validation, none, or (as often published) the test set.

    None also if no pair could be held out, because no user and no item has two interactions.
    """
    choices = {"validation": split.valid, "fixed": None, "best-test-epoch": split.test}
    held_out = choices[config.train.protocol]
    return held_out if held_out is not None and len(held_out) else None


def build(config: RunConfig, dataset: Dataset, graph: BipartiteGraph | None = None) -> Model:
    """The model with these settings, built on the pairs that it learns from, but not yet fitted."""
    graph = graph or BipartiteGraph(dataset.split.learned(refit=config.train.refit))
    return build_model(graph, config.model_name, config.model_options)


def require_room(model: Model) -> None:
    """A ConfigError if fitting the model will need more memory than there is."""
    require_memory(
        model.bytes_to_fit(),
        f"fitting {type(model).__name__} to {model.graph.n_users:,} users and "
        f"{model.graph.n_items:,} items",
        "use a smaller dim, another model or fewer items (min_user and min_item of prepare)",
    )


def is_solved(config: RunConfig) -> bool:
    """Whether a model of these settings is solved in closed form, and has nothing to train."""
    settings = check_settings(config.model_name, config.model_options)
    return MODELS[config.model_name].solved(settings)


def _solved(config: RunConfig, pairs: Interactions, progress: Progress) -> Model:
    model = build_model(BipartiteGraph(pairs), config.model_name, config.model_options)
    require_room(model)
    model.report = progress
    model.solve_(config.seed)
    return model


def _learn_on_a_cut_(
    model: Model,
    config: RunConfig,
    split: Split,
    state: TrainState | None,
    progress: Progress,
    after_epoch: AfterEpoch,
) -> None:
    """Let the times learn on pairs that are held out for that alone, since no validation pairs are
    held out to choose the epoch."""
    cut = with_validation(everything(split), config.train, config.seed)
    if not model.lesson_epochs or len(cut.valid) < FEWEST_PAIRS:
        return
    learner = build_model(BipartiteGraph(cut.train), config.model_name, config.model_options)
    learner.report = progress
    learner.initialise_(config.seed)
    train(
        learner,
        config.train,
        config.loss,
        seed=config.seed,
        lesson=cut.valid,
        state=state,
        last_epoch=model.lesson_epochs,
        stage="times",
        shown_as="learning the times",
        progress=progress,
        after_epoch=after_epoch,
    )
    model.take_learned_from_(learner)

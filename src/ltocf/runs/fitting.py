"""fit(): the one way from data and settings to a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ltocf.available import require_memory
from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model, trains
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.runs.depth import learn_depth_, learners
from ltocf.runs.records import AfterEpoch, EpochRecord, TrainState
from ltocf.runs.training import train
from ltocf.runs.validation import everything, with_validation


@dataclass(frozen=True)
class Fit:
    """A fitted model, the data as they were cut for it, and how training went."""

    model: Model
    dataset: Dataset
    records: list[EpochRecord]


def cut_for(config: RunConfig, dataset: Dataset) -> Dataset:
    """The data set with a validation set to choose the epoch by, or with all of train where none
    is needed, as for a closed form."""
    chooses = config.train.protocol == "validation" and trains(
        config.model_name, config.model_options
    )
    split = dataset.split
    cut = with_validation(split, config.train, config.seed) if chooses else everything(split)
    return replace(dataset, split=cut)


def held_out_of(config: RunConfig, split: Split) -> Interactions | None:
    """What the epoch is chosen by: validation, nothing, or (as often published) the test set.

    Nothing also where nothing could be held out, as nobody and no item has two interactions.
    """
    choices = {"validation": split.valid, "fixed": None, "best-test-epoch": split.test}
    held_out = choices[config.train.protocol]
    return held_out if held_out is not None and len(held_out) else None


def learned_from(config: RunConfig, split: Split) -> Interactions:
    """The pairs that the model which is kept has learned from."""
    return split.seen if config.train.refit else split.train


def build(config: RunConfig, dataset: Dataset, graph: BipartiteGraph | None = None) -> Model:
    """The model of these settings on what it is to have learned from, not yet fitted."""
    graph = graph or BipartiteGraph(learned_from(config, dataset.split))
    return build_model(graph, config.model_name, config.model_options)


def require_room(model: Model) -> None:
    """A ConfigError if fitting the model will need more memory than there is."""
    require_memory(
        model.bytes_to_fit(),
        f"fitting {type(model).__name__} to {model.graph.n_users:,} users and "
        f"{model.graph.n_items:,} items",
        "use a smaller dim, another model or fewer items (min_user and min_item of prepare)",
    )


def fit(
    dataset: Dataset,
    config: RunConfig,
    *,
    model: Model | None = None,
    start: Callable[[Model], None] | None = None,
    state: TrainState | None = None,
    progress: Progress = silent,
    after_epoch: AfterEpoch = lambda state, record: None,
) -> Fit:
    """Fit what `config` asks for to `dataset`, which `cut_for` has cut.

    A trained model chooses its epoch, and its depth if it learns that on held-out pairs, on
    validation; with `refit` it then learns for as long from all pairs. `model` is the one
    that `build` made, if somebody has. `start` sets the parameters that training begins with,
    which are drawn otherwise. With `state`, as `after_epoch` was given it, an interrupted training
    goes on.
    """
    final = model or build(config, dataset)
    require_room(final)
    final.solve_(config.seed)
    if not final.trained:
        return Fit(final, dataset, [])
    split, held_out = dataset.split, held_out_of(config, dataset.split)
    planned = config.train.epochs_for(split.seen.pairs_per_user)
    schedule = config.train.model_copy(update={"epochs": planned})
    begin = start or (lambda model: model.draw_(config.seed))
    refits = config.train.refit and config.train.protocol == "validation" and held_out is not None
    chooser = final
    if refits:
        chooser = build(config, dataset, BipartiteGraph(split.train))
        chooser.solve_(config.seed)
    last = state

    def remember(state: TrainState, record: EpochRecord) -> None:
        nonlocal last
        last = state
        after_epoch(state, record)

    if state is None:
        if start is None:
            _learn_depth_(chooser, config, split, progress)
        begin(chooser)
    records = train(
        chooser,
        schedule,
        config.loss,
        seed=config.seed,
        held_out=held_out,
        state=state,
        progress=progress,
        after_epoch=remember,
    )
    if refits:
        final.carry_(chooser)
        begin(final)
        chosen = config.train.whole_schedule(last.best_epoch if last else 0, planned)
        train(
            final,
            schedule.model_copy(update={"epochs": chosen}),
            config.loss,
            seed=config.seed,
            stage="training on all pairs",
            progress=progress,
        )
    return Fit(final, dataset, records)


def _learn_depth_(model: Model, config: RunConfig, split: Split, progress: Progress) -> None:
    """Learn times on the validation pairs, or on pairs held out for nothing else."""
    if not learners(model):
        return
    learner, cut = model, split
    if config.train.protocol != "validation":
        cut = with_validation(everything(split), config.train, config.seed)
        graph = BipartiteGraph(cut.train)
        learner = build_model(graph, config.model_name, config.model_options)
    learn_depth_(learner, cut.valid, config.train, config.loss, seed=config.seed, progress=progress)
    model.carry_(learner)

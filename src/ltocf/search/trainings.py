"""Candidates that are trained: on validation for a trial, then on all pairs for as long."""

from __future__ import annotations

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.progress import OutOfTime, Progress
from ltocf.search.candidates import loss_settings, train_settings
from ltocf.search.climbing import Options
from ltocf.search.journal import Trial
from ltocf.training.fitting import Fit, choose_epochs, fit_for


def trained_on_validation(
    name: str, options: Options, split: Split, config: RunConfig, progress: Progress
) -> Fit:
    """The model at its best epoch; if the training is stopped early, at the best until then."""
    settings = _settings(name, options, config, "validation")
    train = train_settings(options, settings.train, split.seen.pairs_per_user)
    settings = settings.model_copy(update={"train": train})
    return choose_epochs(Dataset("search", split), settings, progress=progress)


def trained_on_everything(
    trial: Trial, like: Model, dataset: Dataset, config: RunConfig, progress: Progress
) -> Model:
    """A model trained on all pairs, for as many epochs as the trial chose and with what it found
    out, such as times. If the training is stopped early, there is no model."""
    settings = _settings(trial.name, trial.options, config, "fixed")
    found = fit_for(trial.epochs, dataset, settings, like=like, progress=progress)
    if not found.complete:
        raise OutOfTime
    return found.model


def with_other_histories(
    fitted: Model, graph: BipartiteGraph, name: str, options: Options
) -> Model:
    """A model fitted to this graph with options that only change how it weighs histories."""
    model = build_model(graph, name, options)
    if model.config == fitted.config:
        return fitted
    model.restore_(fitted.fitted_state())
    return model


def _settings(name: str, options: Options, config: RunConfig, protocol: str) -> RunConfig:
    config = config.model_copy(update=loss_settings(options, config))
    train = config.train.model_copy(update={"protocol": protocol, "refit": False})
    return config.model_copy(update={"model": {"name": name, **options}, "train": train})

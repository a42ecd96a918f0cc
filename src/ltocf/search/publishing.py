"""Fit the model that is best on validation to all pairs; each member of a blend is fitted once.

To train on all pairs takes as long as validation's training did. Until there is time for it, a
provisional model stands in: the parameters that validation judged, on the graph of all pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS, build_model
from ltocf.models.base import Model
from ltocf.models.blend import Blend
from ltocf.progress import Progress
from ltocf.search.candidates import loss_settings
from ltocf.search.climbing import Options
from ltocf.search.costs import Costs
from ltocf.search.journal import Journal, Trial
from ltocf.search.trainings import trained_on_everything, with_other_histories
from ltocf.training.protocol import everything


@dataclass(frozen=True)
class Choice:
    """The best model so far: one trial, or a blend of several with their weights."""

    trials: tuple[Trial, ...]
    weights: tuple[float, ...]
    recall: float
    ndcg: float
    provisional: bool = False  # a member has not been trained on all pairs

    @classmethod
    def single(cls, trial: Trial) -> Choice:
        return cls((trial,), (1.0,), trial.recall, trial.ndcg)

    @classmethod
    def unjudged(cls, name: str, options: Options) -> Choice:
        return cls.single(Trial.unjudged(name, options))

    @classmethod
    def restored(cls, journal: Journal) -> Choice:
        """What the search of this journal saved last."""
        saved = journal.saved[-1]
        name, options = saved.model["name"], _without_name(saved.model)
        alone = [{"model": name, "weight": 1.0, "options": options}]
        members = options.get("members", alone)
        asked = [(member["model"], member["options"]) for member in members]
        trials = tuple(journal.find(*one) or Trial.unjudged(*one) for one in asked)
        if len(trials) == 1:  # perhaps saved before it was judged
            return replace(cls.single(trials[0]), provisional=saved.provisional)
        weights = tuple(float(member["weight"]) for member in members)
        figures = saved.recall or 0.0, saved.ndcg or 0.0
        return cls(trials, weights, *figures, saved.provisional)

    @property
    def merit(self) -> float:
        return self.recall + self.ndcg

    @property
    def label(self) -> str:
        if len(self.trials) == 1:
            return self.trials[0].label
        return " + ".join(
            f"{weight:.3g} {trial.label}"
            for trial, weight in zip(self.trials, self.weights, strict=True)
        )

    @property
    def short(self) -> str:
        return " + ".join(trial.name for trial in self.trials)

    def model(self) -> dict[str, Any]:
        """The section `[model]` of a run's settings."""
        if len(self.trials) == 1:
            return {"name": self.trials[0].name, **self.trials[0].options}
        members = [
            {"model": trial.name, "weight": weight, "options": trial.options}
            for trial, weight in zip(self.trials, self.weights, strict=True)
        ]
        return {"name": "blend", "members": members}

    def config(self, asked: RunConfig) -> RunConfig:
        """Settings that fit this model to all pairs."""
        changes: dict[str, object] = {"protocol": "fixed"}
        trained = [trial for trial in self.trials if trial.epochs is not None]
        if trained:
            changes["epochs"] = trained[0].epochs
            asked = asked.model_copy(update=loss_settings(trained[0].options, asked))
        train = asked.train.model_copy(update=changes)
        return asked.model_copy(update={"model": self.model(), "train": train})


class WholeModels:
    """Models fitted to all pairs but those of test."""

    def __init__(
        self,
        dataset: Dataset,
        config: RunConfig,
        costs: Costs,
        like: Callable[[Trial], Model],
    ) -> None:
        """`like` gives the trained model of a trial, fitted to train. A training on all pairs takes
        over what that one found out, such as times."""
        self.dataset = replace(dataset, split=everything(dataset.split))
        self.config, self.costs, self.like = config, costs, like
        self.graph = BipartiteGraph(self.dataset.split.train)
        self._fitted: dict[str, Model] = {}

    def seconds(self, *trials: Trial) -> float:
        """How long `fit` is expected to take for all of these."""
        train = self.dataset.split.train
        new = {trial.fit_key: trial for trial in trials if trial.fit_key not in self._fitted}
        return sum(self.costs.fitting(one.name, one.options, train) for one in new.values())

    def untrained(self, choice: Choice) -> bool:
        """Whether a member of it has to be trained on all pairs."""
        return any(
            not MODELS[trial.name].solved() and trial.fit_key not in self._fitted
            for trial in choice.trials
        )

    def seconds_for(self, choice: Choice) -> float:
        """How long `fit` is expected to take. What is provisional takes no time."""
        if not choice.provisional:
            return self.seconds(*choice.trials)
        return self.seconds(*(trial for trial in choice.trials if MODELS[trial.name].solved()))

    def fit(self, choice: Choice, progress: Progress) -> Model:
        """The chosen model. Members that the last choice had too are not fitted again."""
        fitted, provisional = dict[str, Model](), set[str]()
        for trial in choice.trials:
            key = trial.fit_key
            if choice.provisional and self.untrained(Choice.single(trial)):
                fitted[key] = build_model(self.graph, trial.name, trial.options)
                fitted[key].restore_(self.like(trial).fitted_state())
                provisional.add(key)
            else:
                fitted[key] = self._member(trial, progress)
        self._fitted = {key: model for key, model in fitted.items() if key not in provisional}
        members = [
            with_other_histories(fitted[trial.fit_key], self.graph, trial.name, trial.options)
            for trial in choice.trials
        ]
        if len(members) == 1:
            return members[0]
        model = build_model(self.graph, "blend", _without_name(choice.model()))
        assert isinstance(model, Blend)
        for index, member in enumerate(members):
            model.members[index] = member  # type: ignore[index]
        return model.eval()

    def _member(self, trial: Trial, progress: Progress) -> Model:
        key = trial.fit_key
        if key in self._fitted:
            return self._fitted[key]
        started = time.perf_counter()
        if MODELS[trial.name].solved():
            model = build_model(self.graph, trial.name, trial.options)
            progress("fitting", 0, None, f"{trial.name} on all pairs")
            model.report = progress
            model.initialise_(self.config.seed)
        else:
            model = trained_on_everything(
                trial, self.like(trial), self.dataset, self.config, progress
            )
        seconds = time.perf_counter() - started
        self.costs.learn(trial.name, trial.options, self.dataset.split.train, seconds)
        self._fitted[key] = model
        return model


def _without_name(model: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key != "name"}

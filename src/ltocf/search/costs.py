"""How long a fit will take: rough constants, corrected by what this machine shows today."""

from __future__ import annotations

import math

import numpy as np

from ltocf.config import TrainConfig
from ltocf.data.interactions import Interactions
from ltocf.search.candidates import GIVEN_TIMES, train_settings
from ltocf.search.climbing import Options

# Seconds per unit of work: rough estimates for two cores, corrected by what a search measures.
CO_OCCURRENCES = {  # per pair of items that one user has both of
    "turbocf": 2.5e-8,
    "rp3beta": 2.5e-8,
    "itemknn": 2.5e-8,
    "sparse_ease": 2.2e-7,
    "ease": 2e-9,
    "transitions": 1.2e-8,
}
# Per pair, for a filter of the graph without singular vectors: nothing is solved, but judging it
# means filtering some thousand histories.
FILTERING = 4e-6
# Factors for these models; most of the time depends on the rank.
SPECTRA = {"gfcf": 1.0, "chebycf": 1.6, "bspm": 1.5}
SPECTRUM = 2e-4, 4e-6  # per user and item, and per pair
FILTER_ALONE = "filter of the graph"
TRAININGS = {"ials": 5e-5}  # per pair, for the whole training
EPOCH = 8e-6  # of LT-OCF, per pair
LESSONS = 6  # about as many epochs more if its times are to learn
WITH_GIVEN_TIMES = "ltocf with given times"
INVERSE = 2e-11  # per cube of the smaller side of a dense inverse
LEAST = 0.2
UNKNOWN = 5e-5  # per pair, of a model that is not listed
SHARE_OF_NEWS = 0.5  # weight of one measurement in the estimate of this machine's speed


class Costs:
    """Seconds that fits will take on this machine, as it is now."""

    def __init__(self) -> None:
        self.slowness = 1.0  # relative to the machine of the constants
        self.judging = 1.0  # seconds that the latest judgement took
        self._measured: dict[str, tuple[float, float]] = {}  # seconds, and the work they took

    def fitting(self, name: str, options: Options, pairs: Interactions) -> float:
        """Seconds to fit this model to these pairs: by a measurement of the model if there is
        one."""
        task = task_of(name, options)
        work = work_of(task, pairs)
        if task in self._measured:
            seconds, of = self._measured[task]
            return seconds * max(work / of, 0.5)
        return work * self.slowness

    def learn(self, name: str, options: Options, pairs: Interactions, seconds: float) -> None:
        """Learn from the seconds that a fit took, for this model and for the machine."""
        task = task_of(name, options)
        work = work_of(task, pairs)
        self._measured[task] = seconds, work
        # Shorter fits measure start-up rather than speed. A filter alone takes its time when it is
        # judged, and singular vectors may come from the cache.
        if work > LEAST and task != FILTER_ALONE and task not in SPECTRA:
            ratio = min(max(seconds / work, 0.05), 50.0)
            news = SHARE_OF_NEWS * (math.log(ratio) - math.log(self.slowness))
            self.slowness = math.exp(math.log(self.slowness) + news)


def task_of(name: str, options: Options) -> str:
    """A name shared by fits that take about equally long: the model, whether its times learn, and
    for a filter of the graph whether it has an ideal part, since its singular vectors take nearly
    all of the time."""
    if name in SPECTRA and options.get("ideal_weight") == 0:
        return FILTER_ALONE
    if name == "ltocf" and options.get("learn_times") is False:
        return WITH_GIVEN_TIMES
    return name


def work_of(task: str, pairs: Interactions) -> float:
    """Expected seconds on the machine of the constants."""
    together = float(np.square(pairs.user_degrees.astype(np.float64)).sum())
    if task in CO_OCCURRENCES:
        seconds = CO_OCCURRENCES[task] * together
        if task == "ease":
            seconds += INVERSE * min(pairs.n_users, pairs.n_items) ** 3
    elif task == "popularity":
        seconds = 0.0
    elif task == FILTER_ALONE:
        seconds = FILTERING * len(pairs)
    elif task == "ltocf":
        epochs = TrainConfig().epochs_for(pairs.pairs_per_user) + LESSONS
        seconds = EPOCH * len(pairs) * epochs
    elif task == WITH_GIVEN_TIMES:
        settings = train_settings(GIVEN_TIMES, TrainConfig(), pairs.pairs_per_user)
        seconds = EPOCH * len(pairs) * settings.epochs_for(pairs.pairs_per_user)
    elif task in SPECTRA:
        of_nodes, of_pairs = SPECTRUM
        nodes = pairs.n_users + pairs.n_items
        seconds = SPECTRA[task] * (of_nodes * nodes + of_pairs * len(pairs))
    else:
        seconds = TRAININGS.get(task, UNKNOWN) * len(pairs)
    return max(seconds, LEAST)

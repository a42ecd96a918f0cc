"""What diversity costs and gains, measured on validation before anybody sees such a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.beyond import intra_list_diversity
from ltocf.ranking.metrics import find_hits, list_metrics, testable_users
from ltocf.recommend.lists import FittedModel, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.rules import Rules
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.recommend.rules.diversity import item_likeness
from ltocf.scorers.complete import complete
from ltocf.training.fitting import choose_epochs
from ltocf.training.protocol import with_validation

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
USERS = 2000  # more of them would not tell the levels apart any better


@dataclass(frozen=True)
class DiversityPrice:
    """What a level of diversity does to lists: how good they are, and how different their items."""

    diversity: float
    ndcg: float
    intra_list: float


def diversity_prices(
    dataset: Dataset,
    config: RunConfig,
    model: Model,
    k: int = 20,
    *,
    by: str = "attributes",
    levels: Sequence[float] = LEVELS,
    progress: Progress = silent,
) -> list[DiversityPrice]:
    """NDCG@k on validation and intra-list diversity of each level.

    A model that has learned from the validation pairs is fitted once more without them.
    """
    rules = Rules(diversity=1.0, by=by)
    rules.on(shelf_of(dataset))  # refused before anything is fitted
    split = dataset.split
    if not len(split.valid) or config.train.refit:
        dataset = replace(dataset, split=with_validation(split, config.train, config.seed))
        model = choose_epochs(dataset, config, progress=progress).model
    train, valid = dataset.split.train, dataset.split.valid
    if not len(valid):
        raise ConfigError("there are too few pairs to hold some out for validation")
    # Nobody has the validation pairs: they are what a list should find.
    held_out = replace(dataset.split, valid=valid.empty())
    scorer = complete(model.scorer(), train)  # as lists are made, of untouched items too
    fitted = FittedModel(replace(dataset, split=held_out), scorer, train, lambda: model)
    catalogue, users = dataset.catalogue, testable_users(valid, USERS)
    likeness = item_likeness(rules, catalogue, lambda: fitted.item_vectors)
    assert likeness is not None
    described = csr_array(likeness) if catalogue.likeness is None else catalogue.likeness
    people = list(map(Person, users.tolist()))
    found = []
    for done, level in enumerate(levels):
        made = make_lists(fitted, people, ListOptions(k, rules=Rules(diversity=level, by=by)))
        lists = np.full((len(people), k), -1, np.int32)
        for place, one in enumerate(made):
            lists[place, : len(one.items)] = one.items
        hits = find_hits(lists, users, valid)
        ndcg = list_metrics(hits, valid.user_degrees[users], [k])[f"ndcg@{k}"].mean()
        spread = intra_list_diversity(lists, described)
        found.append(DiversityPrice(level, float(ndcg), float(spread.mean())))
        progress("reordering", done + 1, len(levels))
    return found

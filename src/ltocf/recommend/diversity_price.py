"""What diversity costs and gains, measured on validation before anybody sees such a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.sparse import csr_array

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.errors import ConfigError
from ltocf.models.base import Model
from ltocf.progress import Progress, silent
from ltocf.ranking.beyond import intra_list_diversity
from ltocf.ranking.metrics import find_hits, list_metrics, testable_users
from ltocf.recommend.boards import shelf_of
from ltocf.recommend.rules.listing import item_likeness, top_k_by_rules, vectors_of
from ltocf.recommend.rules.rules import Rules
from ltocf.training.fitting import choose_epochs
from ltocf.training.validation import with_validation

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
USERS = 2000  # more of them would not tell the levels apart any better


@dataclass(frozen=True)
class DiversityPrice:
    """Lists of one diversity: how good they are, and how unlike their items."""

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
    split = dataset.split
    if not len(split.valid) or config.train.refit:
        dataset = replace(dataset, split=with_validation(split, config.train, config.seed))
        model = choose_epochs(dataset, config, progress=progress).model
    train, valid = dataset.split.train, dataset.split.valid
    if not len(valid):
        raise ConfigError("there are too few pairs to hold some out for validation")
    scorer, users = model.scorer(), testable_users(valid, USERS)
    shelf, catalogue = shelf_of(dataset), dataset.catalogue
    vectors = scorer.vectors()
    likeness = item_likeness(
        Rules(diversity=1.0, by=by),
        catalogue,
        lambda: vectors_of(None if vectors is None else vectors.items, train),
    )
    assert likeness is not None
    described = csr_array(likeness) if catalogue.likeness is None else catalogue.likeness
    found = []
    for done, level in enumerate(levels):
        on = Rules(diversity=level, by=by).on(shelf)
        lists = top_k_by_rules(
            scorer, users, k, on, n_items=train.n_items, seen=train, likeness=likeness
        ).items
        hits = find_hits(lists, users, valid)
        ndcg = list_metrics(hits, valid.user_degrees[users], [k])[f"ndcg@{k}"].mean()
        spread = intra_list_diversity(lists, described)
        found.append(DiversityPrice(level, float(ndcg), float(spread.mean())))
        progress("reordering", done + 1, len(levels))
    return found

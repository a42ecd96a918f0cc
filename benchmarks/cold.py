"""Items that nobody has touched, recommended by their attributes; and what that does to the others.

python -m benchmarks.cold --data $LTOCF_DATA/beauty --json

A tenth of the items is hidden from training wholly, and everybody's last item of the rest too. All
is chosen on a cut of the same kind of what is left; then each is tested once:
- cold: NDCG@20 of the hidden items ranked among themselves, and among all items, by `attributes`,
  by content kNN (the cosine of tags, summed over the history; plain, and with rare tags weighing
  more, scaled as in TF-IDF), by the popularity of an item's tags, and by the nearest touched items
  by tags, which speak for a hidden one in every model that is served: in transitions, and in
  filters of a graph in which tags are nodes (`tag_weight` = 1, not chosen);
- warm: NDCG@20 of the last items, by transitions alone and blended with `attributes`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.beauty import read_beauty, with_attributes
from benchmarks.measure import machine
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.splits import Split, hold_out_validation, split_pairs
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.ranking.metrics import evaluate
from ltocf.scorers.attributes import tag_vectors
from ltocf.scorers.complete import complete
from ltocf.scorers.scorer import Scorer

Scores = Callable[[Rows], Any]  # or a scorer
SHARED, RECENCIES = (0.0, 0.3, 1.0), (0.0, 0.5, 1.0)
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)  # of attributes in the blend; 0 is without


class Hidden:
    """Train without the items of `cold` and without everybody's last of the others, `warm`."""

    def __init__(self, split: Split, cold: Interactions, seed: int) -> None:
        held = hold_out_validation(replace(split, valid=split.valid.empty()), seed=seed, cut="last")
        self.train, self.warm, self.cold = held.train, held.valid, cold
        self.is_cold = cold.item_degrees > 0
        self.graph = BipartiteGraph(self.train)

    def fitted(self, name: str, options: dict[str, Any]) -> Scorer:
        model = build_model(self.graph, name, options)
        model.initialise_(0)
        return model.scorer()

    def cold_ndcg(self, scores: Scores, *, among_all: bool = False) -> float:
        allowed = np.where(self.is_cold | among_all, 0, -np.inf).astype(np.float32)
        return _ndcg(lambda users: scores(users) + allowed, self.cold, self.train)

    def warm_ndcg(self, scores: Scores) -> float:
        return _ndcg(scores, self.warm, self.train)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="the folder of beauty")
    parser.add_argument("--seed", type=int, default=0, help="of the split; default: 0")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    folder = Path(arguments.data)
    whole = split_pairs(read_beauty(folder), "cold-items", seed=arguments.seed)
    split = with_attributes(folder, whole).split
    nested = hold_out_validation(split, seed=arguments.seed, cut="items")
    choosing = Hidden(nested, nested.valid, arguments.seed)
    result = report(choosing, Hidden(split, split.test, arguments.seed))
    result |= {"data": folder.name, "seed": arguments.seed, "machine": machine()}
    print(json.dumps(result, indent=None if arguments.json else 2))


def report(choosing: Hidden, testing: Hidden) -> dict[str, Any]:
    options = _best_attributes(choosing)
    weight = _best_weight(choosing, options)
    attributes = testing.fitted("attributes", options)
    baselines = {
        "content kNN": content_knn(testing.train, rare=False),
        "content kNN, rare tags first": content_knn(testing.train, rare=True),
        "popularity of tags": tag_popularity(testing.train),
    }
    as_nodes = {
        f"{name}, tags as nodes": complete(testing.fitted(name, {"tag_weight": 1.0}), testing.train)
        for name in ("rp3beta", "turbocf", "gfcf")
    }
    transitions = testing.fitted("transitions", {})
    nearest = complete(transitions, testing.train)
    by_nearest = {"transitions, cold items by the nearest": nearest}
    cold = {
        name: {
            "among cold": testing.cold_ndcg(scores),
            "among all": testing.cold_ndcg(scores, among_all=True),
        }
        for name, scores in {
            "attributes": attributes,
            **as_nodes,
            **by_nearest,
            **baselines,
        }.items()
    }
    blend = testing.fitted("blend", _blend(weight, options))
    best = max(cold[name]["among cold"] for name in baselines if name.startswith("content"))
    popular = cold["popularity of tags"]["among cold"]
    return {
        "chosen": {"attributes": options, "weight in the blend": weight},
        "cold": cold,
        "above content kNN": cold["attributes"]["among cold"] / best - 1,
        "times popularity of tags": cold["attributes"]["among cold"] / popular,
        "warm": {
            "transitions": testing.warm_ndcg(transitions),
            "transitions, cold items by the nearest": testing.warm_ndcg(nearest),
            "with attributes": testing.warm_ndcg(blend),
        },
        "cold, by that blend": testing.cold_ndcg(blend),
    }


def _best_attributes(choosing: Hidden) -> dict[str, float]:
    """The settings by which validation's cold items are ranked best, one after another. Popularity
    stays out: an item that nobody has touched has none."""
    best: dict[str, float] = {"popularity_power": 0.0, "shared": 0.3, "recency": 0.0}
    grid = {"recency": RECENCIES, "shared": SHARED}
    for key, values in grid.items():
        found = {
            value: choosing.cold_ndcg(choosing.fitted("attributes", best | {key: value}))
            for value in values
        }
        best[key] = max(found, key=lambda value: found[value])
    return best


def _best_weight(choosing: Hidden, options: dict[str, float]) -> float:
    found = {
        weight: choosing.warm_ndcg(choosing.fitted("blend", _blend(weight, options)))
        for weight in WEIGHTS
    }
    return max(found, key=lambda weight: found[weight])


def _blend(weight: float, options: dict[str, float]) -> dict[str, Any]:
    members = [
        {"model": "transitions", "weight": 1.0, "options": {}},
        {"model": "attributes", "weight": weight, "options": options},
    ]
    return {"members": members}


def content_knn(train: Interactions, *, rare: bool) -> Scores:
    """The cosine of each item's tags with those of the history, summed over it."""
    tags = tag_vectors(train) if rare else _unit(train.item_tags)
    histories = histories_of(train, ordered=False)
    return lambda users: ((histories[users] @ tags) @ tags.T).toarray()


def tag_popularity(train: Interactions) -> Scores:
    """The mean interactions of the items that have an item's tags, the same for everybody."""
    assert train.item_tags is not None
    tags = train.item_tags
    counts = np.asarray(tags.sum(axis=0)).ravel()
    popular: NDArray[np.float32] = (tags.T @ train.item_degrees) / np.maximum(counts, 1)
    scores = (_unit(tags) @ popular).astype(np.float32)
    return lambda users: np.repeat(scores[None], len(users), axis=0)


def _unit(tags: csr_array | None) -> csr_array:
    assert tags is not None
    counts = np.diff(tags.indptr)
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    return csr_array((values, tags.indices, tags.indptr), shape=tags.shape)


def _ndcg(scores: Scores, wanted: Interactions, seen: Interactions) -> float:
    return evaluate(scores, wanted, seen)["ndcg@20"]


if __name__ == "__main__":
    main()

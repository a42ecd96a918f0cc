"""How much models gain from knowing how often somebody listened, on made-up play counts.

python -m benchmarks.strength --json

Listeners have a few tastes and artists one kind each. Half of what somebody listens to follows
their tastes and is played often, with a long tail; the other half is chance, by renown alone, and
is played once or twice. A fifth of each one's pairs is held out at random. Each model is fitted on
the same pairs with and without the plays, and asked for all held-out pairs, and for those that were
played four times or more: what somebody came back to.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.measure import machine
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.splits import Split, split_pairs
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.recommender import Recommender

KINDS, OFTEN = 12, 4
MODELS: dict[str, dict[str, Any]] = {
    "ltocf": {"dim": 64, "epochs": 20, "start": "spectral"},
    "gfcf": {"rank": 64},
    "ease": {},
    "itemknn": {},
    "rp3beta": {},
}


def make_listens(people: int, artists: int, seed: int) -> Interactions:
    """Who listened to whom, and how often."""
    random = np.random.default_rng(seed)
    kinds = random.integers(KINDS, size=artists)
    renown = (1.0 + random.permutation(artists)) ** -0.6
    users, items, plays = [], [], []
    for person in range(people):
        tastes = random.dirichlet(np.full(KINDS, 0.15))
        count = int(random.integers(10, 30))
        loved = _draw(random, renown * (tastes[kinds] + 1e-9), count)
        chance = np.setdiff1d(_draw(random, renown, count), loved)
        items += [loved, chance]
        plays += [1 + random.poisson(random.lognormal(2, 1, size=count))]
        plays += [1 + random.poisson(0.3, size=len(chance))]
        users.append(np.full(count + len(chance), person))
    weights = np.concatenate(plays).astype(np.float32)
    rows = np.concatenate(users), np.concatenate(items)
    return Interactions.build(*rows, people, artists, None, weights)


def _draw(random: np.random.Generator, weights: np.ndarray[Any, Any], count: int) -> Any:
    # The largest of log-weights plus Gumbel noise are a draw without replacement.
    return np.argsort(-(np.log(weights) + random.gumbel(size=len(weights))))[:count]


def measure(name: str, split: Split, seed: int) -> dict[str, float]:
    """Recall@20 of all held-out pairs and of those played often."""
    recommender = Recommender(name, seed=seed, **MODELS[name]).fit(Dataset("listens", split))
    assert split.test.weights is not None
    often = split.test.select(split.test.weights >= OFTEN)
    parts = {"all": split.test, "often": often}
    return {
        part: evaluate(recommender.scorer, pairs, split.seen)["recall@20"]
        for part, pairs in parts.items()
    }


def main() -> None:
    arguments = parse()
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for seed in range(arguments.seeds):
        listens = make_listens(arguments.people, arguments.artists, seed)
        split = split_pairs(listens, ratio=0.8, seed=seed)
        without = replace(split, train=replace(split.train, weights=None))
        for name in arguments.models:
            for kind, data in (("pairs", without), ("plays", split)):
                for part, recall in measure(name, data, seed).items():
                    by_part = found.setdefault(name, {}).setdefault(part, {})
                    by_part.setdefault(kind, []).append(recall)
            shown = {
                part: f"{np.mean(by['pairs']):.4f} -> {np.mean(by['plays']):.4f}"
                for part, by in found[name].items()
            }
            print(f"seed {seed}  {name:8} {shown}", flush=True)
    means = {
        name: {
            part: {kind: round(float(np.mean(values)), 4) for kind, values in by.items()}
            for part, by in parts.items()
        }
        for name, parts in found.items()
    }
    ratio = {
        name: {part: round(by["plays"] / by["pairs"], 3) for part, by in parts.items()}
        for name, parts in means.items()
    }
    result = {"machine": machine(), "seeds": arguments.seeds, "ratio": ratio, "recall@20": means}
    print(json.dumps(result, indent=None if arguments.json else 2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=tuple(MODELS), choices=MODELS)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--artists", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3, help="data sets to average over")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""People held out of training wholly, by 80 % of what they have: the protocol of Mult-VAE and EASE.

python -m benchmarks.strong --data $LTOCF_DATA/gowalla --json

A tenth of the people is test and another tenth validation. Of each of them, 80 % of the items at
random is the history that they are folded in by, and the rest is to be found among all items that
are not in it: Recall@20, Recall@50, NDCG@100. The settings of each model are the best of a few on
validation; each is then tested once. Both samples are of people with five items or more.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from benchmarks.measure import machine
from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Interactions, Rows
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import no_split
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.recommend.recommender import Recommender
from ltocf.scorers.scorer import Scorer
from ltocf.training.fitting import fit

FEWEST, HISTORY, SHARE = 5, 0.8, 0.1
FAMILY = {"dropout": 0.6, "user_power": 0.3, "item_power": 0.2}  # DAN's, of its authors on Gowalla
MODELS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "popularity": ("popularity", [{}]),
    "LT-OCF": ("ltocf", [{}]),
    "GF-CF": ("gfcf", [{}]),
    "ChebyCF": ("chebycf", [{"degree_power": power} for power in (0.3, 0.5)]),
    "Turbo-CF": ("turbocf", [{"power": power} for power in (0.5, 0.7)]),
    "RP3beta": ("rp3beta", [{"beta": beta} for beta in (0.2, 0.4)]),
    "iALS": ("ials", [{"unobserved_weight": weight} for weight in (0.03, 0.1, 0.3)]),
    "sparse EASE": ("sparse_ease", [{"l2": l2} for l2 in (30.0, 100.0)]),
    "sparse DAN": ("sparse_ease", [{"l2": l2} | FAMILY for l2 in (10.0, 20.0)]),
    "EASE": ("ease", [{"l2": l2} for l2 in (100.0, 300.0)]),
    "DAN": ("ease", [{"l2": l2} | FAMILY for l2 in (10.0, 20.0)]),
    # It chooses on validation pairs of its own, cut off the people of training.
    "search": ("auto", [{}]),
}


class People(NamedTuple):
    """Some who are not in training: what they are known by, and what is to be found."""

    history: Interactions
    wanted: Interactions

    def metrics(self, scorer: Scorer) -> Metrics:
        rows = histories_of(self.history, ordered=False)

        def scores(users: Rows) -> Any:
            return scorer.from_history(csr_array(rows[users]))

        found = evaluate(scores, self.wanted, self.history, (20, 50, 100))
        return {name: found[name] for name in ("recall@20", "recall@50", "ndcg@100")}


def hold_out(pairs: Interactions, seed: int) -> tuple[Interactions, People, People]:
    """The pairs of those who stay, and the people of validation and of test."""
    random = np.random.default_rng(seed)
    active = random.permutation(np.flatnonzero(pairs.user_degrees >= FEWEST))
    some = int(SHARE * len(active))
    role = np.zeros(pairs.n_users, dtype=int)
    role[active[:some]], role[active[some : 2 * some]] = 1, 2
    order = np.lexsort([random.random(len(pairs)), pairs.users])
    place = np.empty(len(pairs), dtype=np.int64)
    place[order] = np.arange(len(pairs)) - pairs.indptr[pairs.users]
    known = place < np.floor(HISTORY * pairs.user_degrees[pairs.users])
    valid, test = (
        People(*(pairs.select((role[pairs.users] == which) & part) for part in (known, ~known)))
        for which in (1, 2)
    )
    return pairs.select(role[pairs.users] == 0), valid, test


def measure(
    name: str, train: Interactions, valid: People, test: People, search_seconds: float
) -> dict[str, Any]:
    """The best of the settings on validation, and what it does on test."""
    model, choices = MODELS[name]
    started, tried = time.perf_counter(), []
    for options in choices:
        people = Dataset("people", no_split(train))
        if model == "auto":
            scorer = Recommender("auto", budget=search_seconds).fit(people).scorer
        else:
            scorer = fit(people, RunConfig(model={"name": model} | options)).model.scorer()
        tried.append((valid.metrics(scorer)["ndcg@100"], options, scorer))
    best = max(tried, key=lambda one: one[0])
    return {
        "settings": best[1],
        "validation ndcg@100": best[0],
        "test": test.metrics(best[2]),
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument(
        "--search-seconds", type=float, default=600, help="for the search; default: 600"
    )
    parser.add_argument("--seed", type=int, default=0, help="of who is held out; default: 0")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    split = load_dataset(arguments.data).split
    train, valid, test = hold_out(split.seen.union(split.test), arguments.seed)
    found = {}
    for name in arguments.models:
        found[name] = measure(name, train, valid, test, arguments.search_seconds)
        shown = "  ".join(f"{key} {value:.4f}" for key, value in found[name]["test"].items())
        print(f"{name:12} {shown}  {found[name]['seconds']:.0f} s", flush=True)
    result = {"data": Path(arguments.data).name, "machine": machine(), "models": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()

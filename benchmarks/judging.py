"""How much should be held out, for validation to tell how much each part of a blend weighs, and
how long should the lists be that tell it?

python -m benchmarks.judging --data gowalla --recency 0.4 --trained-recency 1.0 \\
    --times 1.58 3.0 4.25 5.3 --json

P, what `ltocf train` would hold out of train, takes the place of the test set, which is not looked
at. Of what is left, as large a share is held out as P has of all, or three quarters or half of it.
On each cut the same closed forms are solved, LT-OCF is trained with times that are right for so
many pairs, and the weights of a blend are fitted. Figures are Recall@20 + NDCG@20 of 5,000 users;
ratio is what P thinks of the weights from three quarters to what it thinks of those from the whole
share. On the whole share weights are also fitted by the NDCG of lists of 10, 20, 50 and 100 items
of 2,000 users, three draws of them: by depth is the mean of what P thinks of each.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from statistics import fmean
from typing import Any

from benchmarks.measure import machine
from ltocf.config import TrainConfig
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Rows
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.ltocf import depth_factor
from ltocf.ranking.metrics import evaluate, testable_users
from ltocf.runs.settings import make_config
from ltocf.scorers.blend import BlendScorer
from ltocf.scorers.scorer import Scorer
from ltocf.search import mixing
from ltocf.search.mixing import Mix, fit_mix, opinion_of, pooled
from ltocf.training.fitting import fit
from ltocf.training.protocol import with_validation
from ltocf.training.records import merit

USERS = 5000
PARTS = 1, 0.75, 0.5
DEPTHS, DRAWS, FEW = (10, 20, 50, 100), 3, 2000
CLOSED: dict[str, dict[str, Any]] = {
    "rp3beta": {"alpha": 0.6, "beta": 0.2},
    "chebycf": {},
    "sparse_ease": {},
    "gfcf": {"ideal_weight": 0.6},
    "bspm": {},
}


def main() -> None:
    arguments = parse()
    outer = with_validation(load_dataset(arguments.data).split, TrainConfig(), 0)
    inside = replace(outer, test=outer.valid, valid=outer.valid.empty())
    share = len(outer.valid) / len(outer.seen)
    cuts = {
        f"{part:g} of its share": with_validation(inside, TrainConfig(validation=part * share), 0)
        for part in PARTS
    } | {"P": outer}
    found: dict[str, dict[str, Any]] = {}
    mixes: dict[str, Mix] = {}
    of_draws: dict[int, list[Mix]] = {}
    for name, cut in cuts.items():
        scorers = fitted(cut, outer, arguments)
        users = testable_users(cut.valid, USERS)
        alone = {
            model: merit(evaluate(scorer, cut.valid, cut.train, users=users))
            for model, scorer in scorers.items()
        }
        mixes[name] = mixed(list(scorers.values()), cut, users)
        weights = {list(scorers)[part]: weight for part, weight in mixes[name].items()}
        found[name] = {"pairs": len(cut.train), "alone": alone, "weights": weights}
        print(name, found[name], flush=True)
        of_draws = of_draws or by_depth(list(scorers.values()), cut)
    users = testable_users(outer.valid, USERS)

    def on_p(mix: Mix) -> float:
        parts = [list(scorers.values())[part] for part in mix]
        blend = BlendScorer(parts, list(mix.values()))
        return merit(evaluate(blend, outer.valid, outer.train, users=users))

    for name, mix in mixes.items():
        found[name]["on P"] = on_p(mix)
    depths = {depth: fmean(map(on_p, drawn)) for depth, drawn in of_draws.items()}
    whole, fewer, *_ = found.values()
    ratio = fewer["on P"] / whole["on P"]
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio}
    result |= {"by depth": depths, "cuts": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def by_depth(scorers: list[Scorer], cut: Split) -> dict[int, list[Mix]]:
    usual, found = mixing.DEPTH, dict[int, list[Mix]]()
    for depth in DEPTHS:
        mixing.DEPTH = depth
        found[depth] = [
            mixed(scorers, cut, testable_users(cut.valid, FEW, draw)) for draw in range(DRAWS)
        ]
    mixing.DEPTH = usual
    return found


def mixed(scorers: list[Scorer], cut: Split, users: Rows) -> Mix:
    opinions = [opinion_of(scorer, users, cut.train) for scorer in scorers]
    return fit_mix(pooled(opinions, users, cut.valid))


def fitted(cut: Split, outer: Split, arguments: argparse.Namespace) -> dict[str, Scorer]:
    graph, scorers = BipartiteGraph(cut.train), dict[str, Scorer]()
    for name, options in CLOSED.items():
        model = build_model(graph, name, options | {"recency": arguments.recency})
        model.initialise_(0)
        scorers[name] = model.scorer()
    factor = depth_factor(outer.train, cut.train)
    *inner, end = (factor * time for time in arguments.times)
    settings = {"times": inner, "end_time": end, "learn_times": False, "refit": False}
    settings |= {"recency": arguments.trained_recency, "epochs": arguments.epochs}
    scorers["ltocf"] = fit(Dataset("cut", cut), make_config({}, settings)).model.scorer()
    return scorers


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--recency", type=float, default=0.0, help="of the closed forms")
    parser.add_argument("--trained-recency", type=float, default=0.0, help="of LT-OCF")
    parser.add_argument(
        "--times",
        nargs=4,
        type=float,
        default=[1.0, 2.0, 3.0, 4.0],
        help="of LT-OCF, the end time last, as they are right where P is held out",
    )
    parser.add_argument("--epochs", type=int, default=12, help="of LT-OCF")
    parser.add_argument("--json", action="store_true", help="print the result as one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Whether what validation prefers among a closed form's settings is right further ahead too.

python -m benchmarks.settings --data gowalla --model rp3beta --values beta=0.2,0.4,0.6 --json

Two cuts of train, one within the other, each as 'auto' would make it: V is held out of what is left
when P is. The test set is not looked at. Figures are Recall@20 + NDCG@20 of the same 3,000 users of
a cut, at the recency that is best for it; ratio is what V's choice has on P to the best on P.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from benchmarks.measure import machine
from ltocf.config import TrainConfig
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.ranking.metrics import evaluate, testable_users
from ltocf.runs.settings import parse_overrides
from ltocf.search.candidates import RECENCIES
from ltocf.training.protocol import with_validation
from ltocf.training.records import merit

USERS = 3000


def main() -> None:
    arguments = parse()
    outer = with_validation(load_dataset(arguments.data).split, TrainConfig(), 0)
    inside = replace(outer, test=outer.valid, valid=outer.valid.empty())
    cuts = {"V": with_validation(inside, TrainConfig(), 0), "P": outer}
    key, _, values = arguments.values.partition("=")
    fixed, found = parse_overrides(arguments.settings), dict[str, dict[str, float]]()
    for value in values.split(","):
        options = fixed | parse_overrides([f"{key}={value}"])
        found[value] = {name: best(cut, arguments.model, options) for name, cut in cuts.items()}
        print(f"{key}={value}  " + "  ".join(f"{n} {m:.4f}" for n, m in found[value].items()))
    chosen = max(found.values(), key=lambda merits: merits["V"])["P"]
    ratio = chosen / max(merits["P"] for merits in found.values())
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio, key: found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def best(split: Split, name: str, options: dict[str, object]) -> float:
    """Of the recencies, where the order is known."""
    model = build_model(BipartiteGraph(split.train), name, options)
    model.initialise_(0)
    scorers = [model.scorer()]
    if split.train.timestamps is not None:
        scorers += [recent for r in RECENCIES if (recent := scorers[0].with_recency(r)) is not None]
    users = testable_users(split.valid, USERS, 0)
    return max(merit(evaluate(s, split.valid, split.train, users=users)) for s in scorers)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--model", default="rp3beta", help="a closed form; default: rp3beta")
    parser.add_argument("--values", default="beta=0.2,0.4,0.6", help="what to try, as KEY=A,B,C")
    parser.add_argument("--json", action="store_true", help="print the result as one line")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="that stay as they are")
    return parser.parse_args()


if __name__ == "__main__":
    main()

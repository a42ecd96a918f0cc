"""Is it worth training LT-OCF again on all pairs, once validation has chosen the epoch?

python -m benchmarks.refit --data gowalla --json "learn_times=false end_time=4.7 epochs=16"

P, held out of train as validation pairs are, takes the place of test. Validation pairs are held out
of the rest as ever and choose the epoch. Then three models recommend to everybody: the trained one
as it was judged; its parameters on the graph of all pairs but P, with the histories of those; and
one that was trained again on all pairs but P. `ratio` is the Recall@20 on P of the second to that
of the third. The data set's own test pairs are not looked at.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

from benchmarks.measure import machine, recall_and_ndcg
from ltocf.config import TrainConfig
from ltocf.data.sources.catalog import load_dataset
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.machine.threads import use_threads
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.settings import make_config
from ltocf.training.fitting import choose_epochs, fit_for
from ltocf.training.protocol import everything, with_validation


def main() -> None:
    arguments = parse()
    use_threads(arguments.threads)
    dataset = load_dataset(arguments.data)
    outer = with_validation(everything(dataset.split), TrainConfig(), arguments.seed)
    split = replace(outer, valid=outer.valid.empty(), test=outer.valid)
    dataset = replace(dataset, split=split)
    config = make_config({}, ["model=ltocf", f"seed={arguments.seed}", *arguments.settings.split()])

    began = time.process_time()
    judged = choose_epochs(dataset, config)
    trained = time.process_time()
    inner, model = judged.dataset.split, judged.model
    moved = build_model(BipartiteGraph(split.train), "ltocf", config.model_options)
    moved.restore_(model.fitted_state())

    def on_p(model: Model) -> Metrics:
        return recall_and_ndcg(evaluate(model.scorer(), split.test, split.train))

    found = {
        "as it was judged": recall_and_ndcg(evaluate(model.scorer(), split.test, inner.seen)),
        "on the graph of all pairs": on_p(moved),
    }
    again = time.process_time()
    fixed = config.model_copy(
        update={"train": config.train.model_copy(update={"protocol": "fixed"})}
    )
    found["trained again"] = on_p(fit_for(judged.epochs, dataset, fixed, like=model).model)
    seconds = {"judged": trained - began, "again": time.process_time() - again}
    ratio = found["on the graph of all pairs"]["recall@20"] / found["trained again"]["recall@20"]
    result = {"data": arguments.data, "machine": machine(), "ratio": ratio, "epochs": judged.epochs}
    result |= {"processor seconds": seconds, "on P": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="?", default="", help="KEY=VALUE, with blanks between")
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument("--threads", type=int, help="default: one for each core")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    main()

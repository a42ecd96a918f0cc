"""How much models gain when what a user touched last counts most, by validation.

python -m benchmarks.recency --data gowalla --picture docs/results/recency-gowalla.png --json

The cut is each user's latest fifth of train, the share that the published splits hold out for test;
the test set is not looked at. Each closed form is solved once, with the settings of its config, and
LT-OCF is trained once, with given times, as a search does first; each is then
tried with each recency on the same 4,000 users.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.filters import MODELS, settings
from benchmarks.measure import machine, recall_and_ndcg
from ltocf.config import RunConfig
from ltocf.data.sources.catalog import load_dataset
from ltocf.data.splits import Split, hold_out_validation
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.models.base import Model
from ltocf.progress import silent
from ltocf.ranking.metrics import Metrics, evaluate, testable_users
from ltocf.search.candidates import GIVEN_TIMES
from ltocf.search.climbing import Options
from ltocf.search.judging import MOST_USERS
from ltocf.search.trainings import trained_on_validation, with_other_histories
from ltocf.storage.files import replacing

TRAINED = "ltocf"
CLOSED = tuple(name for name in MODELS if name != "blend")


def main() -> None:
    arguments = parse()
    data = Path(arguments.data).name
    whole = load_dataset(arguments.data).split
    split = hold_out_validation(whole, arguments.validation, seed=0, cut="latest")
    graph, users = BipartiteGraph(split.train), testable_users(split.valid, MOST_USERS)
    found: dict[str, dict[float, Metrics]] = {}
    for name in arguments.models:
        model, options = fitted(name, data, split)
        found[name] = {}
        for recency in arguments.recencies:
            other = with_other_histories(model, graph, name, options | {"recency": recency})
            metrics = evaluate(other.scorer(), split.valid, split.train, users=users)
            found[name][recency] = recall_and_ndcg(metrics)
            shown = "  ".join(f"{key} {value:.4f}" for key, value in found[name][recency].items())
            print(f"{name:8} recency {recency:<5} {shown}", flush=True)
    if arguments.picture:
        draw(found, data, Path(arguments.picture))
    result = {"data": data, "machine": machine(), "ratio": best_ratio(found), "models": found}
    print(json.dumps(result, indent=None if arguments.json else 2))


def fitted(name: str, data: str, split: Split) -> tuple[Model, Options]:
    """The model without recency, and its settings."""
    if name == TRAINED:
        config = RunConfig(model={"name": name})
        return trained_on_validation(name, GIVEN_TIMES, split, config, silent).model, GIVEN_TIMES
    options = settings(data, name).model_options
    model = build_model(BipartiteGraph(split.train), name, options)
    model.initialise_(0)
    return model, options


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="town", help="a directory or a name; default: town")
    parser.add_argument(
        "--models", nargs="+", default=(TRAINED, "chebycf", "bspm", "sparse_ease"),
        choices=(TRAINED, *CLOSED),
    )  # fmt: skip
    parser.add_argument(
        "--recencies", nargs="+", type=float, default=(0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
    )
    parser.add_argument("--validation", type=float, default=0.2, help="share; default: 0.2")
    parser.add_argument("--picture", help="a PNG to draw")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def best_ratio(found: dict[str, dict[float, Metrics]]) -> dict[str, float]:
    """Recall@20 with the best recency over that without."""
    return {
        name: round(max(m["recall@20"] for m in by.values()) / by[0]["recall@20"], 3)
        for name, by in found.items()
        if 0 in by
    }


def draw(found: dict[str, dict[float, Metrics]], data: str, path: Path) -> None:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    for panel, metric, label in zip(
        panels, ("recall@20", "ndcg@20"), ("Recall@20", "NDCG@20"), strict=True
    ):
        for name, by in found.items():
            panel.plot(list(by), [values[metric] for values in by.values()], "o-", label=name)
        panel.set(xlabel="recency", ylabel=f"{label} on validation")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.suptitle(f"{data}: what came last counts most")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


if __name__ == "__main__":
    main()

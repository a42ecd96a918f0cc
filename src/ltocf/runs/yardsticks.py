"""How a run compares with models that take seconds: popularity and a closed form, same split."""

from __future__ import annotations

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.run import Run
from ltocf.training.protocol import question

LARGEST_EASE = 6000  # users or items, whichever are fewer; above this, EASE takes longer than GF-CF
EASE_L2 = 500.0
NEAR = 0.98  # if a closed form has this share of our recall, a blend with it is likely to be better


def compare(run: Run, progress: Progress = silent) -> dict[str, Metrics]:
    """Test metrics of popularity and of EASE or GF-CF, solved on train and validation together.
    Empty for a run that is one of them, or has no test pairs."""
    split, name = run.dataset.split, run.config.model_name
    smaller = min(split.train.n_users, split.train.n_items)
    closed = "ease" if smaller <= LARGEST_EASE else "gfcf"
    if not len(split.test) or name in ("popularity", "random", closed, "blend"):
        return {}
    graph, found = BipartiteGraph(split.seen), dict[str, Metrics]()
    for done, other in enumerate(("popularity", closed)):
        progress("comparing", done, 2, other)
        model = build_model(graph, other, {"l2": EASE_L2} if other == "ease" else {})
        model.initialise_(run.config.seed)
        found[other] = evaluate(*question(model.scorer(), split))
    return found


def verdict(metrics: Metrics, others: dict[str, Metrics]) -> str:
    """One line for people: the others' figures, and when a search would probably do better."""
    shown = ", ".join(f"{name} {values['recall@20']:.4f}" for name, values in others.items())
    best = max(values["recall@20"] for values in others.values())
    ours = metrics["recall@20"]
    line = f"for comparison, Recall@20 of models that take seconds: {shown}"
    if best > NEAR * ours:
        line += "; a search (ltocf train without --model) would probably do better than this run"
    return line

"""How a run compares with what takes seconds: popularity and a closed form, on the same split."""

from __future__ import annotations

from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import Metrics, evaluate
from ltocf.runs.run import Run
from ltocf.training.protocol import question

LARGEST_EASE = 6000  # users or items, whichever are fewer: beyond it takes longer than GF-CF
EASE_L2 = 500.0
NEAR = 0.98  # of ours: a closed form this good promises more of a blend with it


def compare(run: Run, progress: Progress = silent) -> dict[str, Metrics]:
    """Test metrics of popularity and of EASE or GF-CF, solved on all that the run could see. None
    for a run that is one of them, or has no test pairs."""
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
    line = f"on the same split, Recall@20 of what takes seconds: {shown}"
    if best > NEAR * ours:
        line += "; a search (ltocf train without --model) would probably do better than this run"
    return line

"""The history of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ltocf.ranking.metrics import Metrics
from ltocf.storage.files import replacing
from ltocf.training.records import EpochRecord

BLUE, ORANGE = "#2b6cb0", "#c05621"


def draw_curves(records: Sequence[EpochRecord], path: Path) -> None:
    """Loss, held-out Recall@20 and NDCG@20, and the learned times over the epochs."""
    epochs = [record.epoch for record in records]
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    loss, accuracy, times = figure.subplots(1, 3)
    loss.plot(epochs, [record.loss for record in records], color=BLUE)
    loss.set_title("training loss")
    evaluated = [record for record in records if record.metrics]
    for name, label, color in (("recall@20", "Recall@20", BLUE), ("ndcg@20", "NDCG@20", ORANGE)):
        values = [record.metrics[name] for record in evaluated]
        accuracy.plot([r.epoch for r in evaluated], values, ".-", color=color, label=label)
    accuracy.set_title("held-out accuracy" if evaluated else "held-out accuracy (not measured)")
    if evaluated:
        accuracy.legend(frameon=False)
    for path_of_one in zip(*(record.times for record in records), strict=True):
        times.plot(epochs, path_of_one, color=BLUE)
    times.set_title("times the ODE is read at" if any(r.times for r in records) else "no times")
    for axes in (loss, accuracy, times):
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")


def draw_metrics(metrics: Mapping[str, Metrics], path: Path) -> None:
    """Recall@20 and NDCG@20 of several models, side by side."""
    figure = Figure(figsize=(6.4, 1.2 + 0.55 * len(metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for shift, name, label, color in (
        (-0.2, "recall@20", "Recall@20", BLUE),
        (0.2, "ndcg@20", "NDCG@20", ORANGE),
    ):
        values = [found[name] for found in metrics.values()]
        places = [place + shift for place in range(len(values))]
        bars = axes.barh(places, values, height=0.36, color=color, label=label)
        axes.bar_label(bars, fmt="%.3f", padding=3, fontsize=9)
    axes.set_yticks(range(len(metrics)), list(metrics))
    axes.invert_yaxis()
    axes.set(xlabel="on pairs that the models have not seen", xlim=(0, axes.get_xlim()[1] * 1.12))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")

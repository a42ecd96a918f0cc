"""Tables and a picture of what `benchmarks.peers --keep` has kept.

python -m benchmarks.peers_page peers.json --picture docs/images/peers.svg
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ltocf.pictures.curves import BLUE, ORANGE
from ltocf.pictures.style import save_picture

Found = dict[str, dict[str, Any]]
COLUMNS = {
    "fit_processor_seconds": "fit, s",
    "lists_processor_seconds": "lists, s",
    "first_list_processor_seconds": "first list, s",
    "peak_mib": "peak MB",
    "disk_mib": "MB on disk",
    "recall@20": "Recall@20",
}


def is_ours(peer: str) -> bool:
    return peer.startswith("ltocf")


def shown(name: str, value: float) -> str:
    if name == "recall@20":
        return f"{value:.4f}"
    return f"{value:.0f}" if name == "peak_mib" or value >= 100 else f"{value:.2g}"


def table(found: Found) -> list[str]:
    """A row a method, the most accurate first."""
    lines = ["| method | " + " | ".join(COLUMNS.values()) + " |", "| --- " * 7 + "|"]
    for peer, values in sorted(found.items(), key=lambda pair: -pair[1].get("recall@20", 0)):
        if "error" in values:
            lines.append(f"| {peer} | {values['error']} | | | | | |")
            continue
        name = f"**{peer}**" if is_ours(peer) else peer
        cells = [shown(column, values[column]) for column in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def soonest(report: dict[str, Found]) -> list[str]:
    """Processor seconds of the quickest fit that reaches a Recall@20, of ours and of the others;
    what is asked for is 90 % of the best of the others."""
    lines = ["| data | Recall@20 | ours | others |", "| --- | --- | --- | --- |"]
    for data, found in report.items():
        good = {peer: values for peer, values in found.items() if "error" not in values}
        best = max(v["recall@20"] for peer, v in good.items() if not is_ours(peer))
        cells = []
        for ours in (True, False):
            there = [
                (values["fit_processor_seconds"], peer)
                for peer, values in good.items()
                if is_ours(peer) == ours and values["recall@20"] >= 0.9 * best
            ]
            cells.append(f"{min(there)[0]:.2g} s ({min(there)[1]})" if there else "none")
        lines.append(f"| {data} | {0.9 * best:.4f} | " + " | ".join(cells) + " |")
    return lines


def draw(report: dict[str, Found], path: Path) -> None:
    """Recall@20 over the processor seconds of fit, a panel for each data set."""
    rcParams["svg.hashsalt"] = "ltocf"  # the same picture is the same file
    figure = Figure(figsize=(2.9 * len(report), 2.9), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (data, found) in enumerate(report.items(), 1):
        axes = figure.add_subplot(1, len(report), place)
        drawn: list[tuple[float, float]] = []
        best_first = sorted(found.items(), key=lambda pair: -pair[1].get("recall@20", 0))
        for peer, values in best_first:
            if "error" in values:
                continue
            at = values["fit_processor_seconds"], values["recall@20"]
            axes.plot(*at, "o", markersize=4, color=BLUE if is_ours(peer) else ORANGE)
            label = peer.removeprefix("ltocf ").removeprefix("implicit ").partition(" on ")[0]
            crowded = any(0.6 < x / at[0] < 1.6 and 0.95 < y / at[1] < 1.05 for x, y in drawn)
            drawn.append(at)
            aside = (3, -8) if crowded else (3, 3)  # below the point, where another label is above
            axes.annotate(label, at, textcoords="offset points", xytext=aside, fontsize=6)
        axes.set_xscale("log")
        axes.set_title(f"{data}: ltocf blue, others orange", fontsize=7, loc="left")
        axes.set_xlabel("processor seconds of fit", fontsize=7)
        if place == 1:
            axes.set_ylabel("Recall@20 on test", fontsize=7)
        axes.tick_params(labelsize=6)
        axes.margins(x=0.25, y=0.1)
        axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kept", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Found] = json.loads(arguments.kept.read_text())["data"]
    if arguments.picture:
        draw(report, arguments.picture)
    for data, found in report.items():
        print("\n".join([f"### {data}", "", *table(found), ""]))
    print("\n".join(soonest(report)))


if __name__ == "__main__":
    main()

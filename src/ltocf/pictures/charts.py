"""One look for all figures: small, colour-blind safe, readable in grey; SVG, PNG and their data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from ltocf.storage.files import replacing

# Okabe and Ito's colours, in an order in which neighbours also differ in lightness; every series
# has its own marker and dashes besides, so that it is known without colour.
COLOURS = ("#0072B2", "#E69F00", "#000000", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (2, 2)), "-",
)  # fmt: skip
LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "ltocf",  # the same picture is the same file
}
Kind = Literal["line", "scatter", "dots"]


@dataclass(frozen=True)
class Series:
    """y over x, once for every seed: drawn as the mean, and the spread as a band."""

    label: str
    x: Sequence[float]
    ys: Sequence[Sequence[float]]
    notes: Sequence[str] = ()  # beside the points of a scatter

    @property
    def mean(self) -> Any:
        return np.mean(np.array(self.ys, dtype=float), axis=0)

    @property
    def spread(self) -> Any:
        """Standard deviation over the seeds; 0 for one."""
        values = np.array(self.ys, dtype=float)
        return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


@dataclass(frozen=True)
class Chart:
    """One panel: what is drawn and what it is called. `ticks` names the places 0, 1, ... of x."""

    name: str  # of its files
    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: Kind = "line"
    log_x: bool = False
    log_y: bool = False
    ticks: Sequence[str] = ()
    whole_x: bool = False  # x are counts
    markers: bool = True


# A picture's own date or program would make the same picture another file.
FORMATS: dict[str, dict[str, None]] = {
    "svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None},
}  # fmt: skip


def draw(chart: Chart, folder: Path) -> None:
    """FOLDER/NAME.svg, .png, .pdf and .csv."""
    with matplotlib.rc_context(LOOK):
        _save(_figure(chart), folder, chart.name)
    _write_data(chart, folder / f"{chart.name}.csv")


def _figure(chart: Chart) -> Figure:
    figure = Figure(figsize=_size(chart), layout="constrained")
    FigureCanvasAgg(figure)
    _panel(figure.subplots(), chart)
    _legend(figure, chart, columns=2)
    return figure


def draw_panels(charts: Sequence[Chart], folder: Path, name: str) -> None:
    """FOLDER/NAME.svg, .png and .pdf: the charts side by side as one picture, as papers have
    them."""
    with matplotlib.rc_context(LOOK):
        _save(_panels(charts), folder, name)


def _panels(charts: Sequence[Chart]) -> Figure:
    """One legend for all where it says the same of all; otherwise each has its own."""
    sizes = [_size(chart) for chart in charts]
    widths, heights = [width for width, _ in sizes], [height for _, height in sizes]
    figure = Figure(figsize=(sum(widths), max(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    with_legend = [chart for chart in charts if len(chart.series) > 1]
    legends = {tuple((s.label, chart.kind) for s in chart.series) for chart in with_legend}
    if len(legends) < 2:
        row = figure.subplots(1, len(charts), width_ratios=widths, squeeze=False)[0]
        for axes, chart in zip(row, charts, strict=True):
            _panel(axes, chart)
        if with_legend:
            _legend(figure, with_legend[0], columns=2 * len(charts))
        return figure
    parts = figure.subfigures(1, len(charts), width_ratios=widths, squeeze=False)[0]
    for part, chart in zip(parts, charts, strict=True):
        _panel(part.subplots(), chart)
        _legend(part, chart, columns=2)
    return figure


def _save(figure: Figure, folder: Path, name: str) -> None:
    # The layout takes as long as the drawing and is the same in every format: it is made first.
    # Twice, because the first time changes the ticks, and so the room that their labels need.
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix, metadata in FORMATS.items():
        with replacing(folder / f"{name}.{suffix}") as temporary:
            figure.savefig(temporary, format=suffix, dpi=200, metadata=metadata)


def _size(chart: Chart) -> tuple[float, float]:
    """The size of the figure in inches: width and height."""
    return (4.2, 0.8 + 0.26 * len(chart.ticks)) if chart.kind == "dots" else (3.6, 2.6)


def _panel(axes: Any, chart: Chart) -> None:
    for place, series in enumerate(chart.series):
        {"line": _line, "scatter": _scatter, "dots": _dots}[chart.kind](axes, place, series, chart)
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    _scale(axes, chart)


def _style(place: int) -> dict[str, Any]:
    at = place % len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKERS[at]}


def _line(axes: Any, place: int, series: Series, chart: Chart) -> None:
    mean, spread = series.mean, series.spread
    style = _style(place) if chart.markers else {"color": _style(place)["color"]}
    # Some lines coincide: the earlier one is wider, so that it shows behind the later ones.
    width = 1.2 + 0.25 * (len(chart.series) - 1 - place)
    every = max(1, len(series.x) // 12)
    axes.plot(
        series.x, mean, label=series.label, linestyle=DASHES[place % len(DASHES)], linewidth=width,
        **({"markevery": every} if chart.markers else {}), **style,
    )  # fmt: skip
    if len(series.ys) > 1:
        axes.fill_between(
            series.x, mean - spread, mean + spread, color=style["color"], alpha=0.18, linewidth=0
        )


def _scatter(axes: Any, place: int, series: Series, chart: Chart) -> None:
    bars = {"yerr": series.spread} if len(series.ys) > 1 else {}
    style = _style(place)
    axes.errorbar(
        series.x, series.mean, label=series.label, linestyle="none", markersize=5,
        capsize=2, elinewidth=0.8, **bars, **style,
    )  # fmt: skip
    for point, (x, y, note) in enumerate(zip(series.x, series.mean, series.notes, strict=False)):
        # Neither two series nor points that are near each other write on each other; a thin line
        # says which point a note is of.
        away = 6 + 9 * (point % 2)
        axes.annotate(
            note, (x, y), (0, -away if place % 2 else away), textcoords="offset points",
            fontsize=6, ha="center", va="top" if place % 2 else "bottom",
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": style["color"]},
        )  # fmt: skip
    axes.margins(0.2, 0.45)  # with room for the notes


def _dots(axes: Any, place: int, series: Series, chart: Chart) -> None:
    """Values along x, one row of the picture a tick: `x` are rows, `ys` the values."""
    fill = {"markerfacecolor": "none"} if place % 2 else {}  # what is behind it shows
    rows = [-row for row in series.x]
    for values in series.ys[:-1]:
        axes.plot(values, rows, linestyle="none", markersize=4, **fill, **_style(place))
    axes.plot(
        series.ys[-1], rows, linestyle="none", markersize=5 if len(series.ys) == 1 else 4,
        label=series.label, **fill, **_style(place),
    )  # fmt: skip


def _scale(axes: Any, chart: Chart) -> None:
    if chart.log_x:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if chart.kind == "dots":
        axes.set_yticks([-place for place in range(len(chart.ticks))], chart.ticks)
        axes.set_ylim(-len(chart.ticks) + 0.4, 0.6)
        if not chart.log_x:
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
        return
    if chart.log_y:
        axes.set_yscale("log")
    if chart.ticks:
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)
        axes.set_xlim(-0.5, len(chart.ticks) - 0.5)
    elif not chart.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=chart.whole_x))


def _legend(figure: Any, chart: Chart, columns: int) -> None:
    """Beneath the panels of a figure, where it covers nothing; none for a single series."""
    labels = [series.label for series in chart.series]
    if len(labels) < 2:
        return
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles = next(handles for handles, names in found if names == labels)
    fits = sum(map(len, labels)) < 20 * columns  # characters, in one row with their samples
    figure.legend(
        handles, labels, loc="outside lower center", columnspacing=1.2,
        ncols=len(labels) if fits else columns,
    )  # fmt: skip


def _write_data(chart: Chart, path: Path) -> None:
    with (
        replacing(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["series", chart.x or "x", "repeat", chart.y or "y"])
        for series in chart.series:
            names = [f"{series.label}: {note}" for note in series.notes]
            for repeat, ys in enumerate(series.ys):
                for place, (x, y) in enumerate(zip(series.x, ys, strict=True)):
                    label = names[place] if names else series.label
                    at = chart.ticks[int(x)] if chart.ticks else f"{x:.6g}"
                    writer.writerow([label, at, repeat, f"{y:.6g}"])

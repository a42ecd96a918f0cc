from __future__ import annotations

import csv
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from matplotlib.text import Text

from ltocf.pictures.charts import COLOURS, DASHES, MARKERS, Chart, Series, _figure, _panels, draw

TWO = [
    Series("steady", [1, 2, 3], [[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]),
    Series("falling", [1, 2, 3], [[3.0, 2.0, 1.0]]),
]
CHART = Chart("example", "An example", "epoch", "value", TWO)


def test_a_figure_comes_as_pictures_with_its_data(tmp_path):
    draw(CHART, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "example.csv", "example.pdf", "example.png", "example.svg",
    ]  # fmt: skip
    assert imread(tmp_path / "example.png").std() > 0.05  # something is drawn
    with (tmp_path / "example.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    values = [float(row["value"]) for row in rows if row["series"] == "steady"]
    assert values == [1, 2, 3, 3, 2, 5]
    assert [row["repeat"] for row in rows] == ["0"] * 3 + ["1"] * 3 + ["0"] * 3


def test_the_same_figure_is_the_same_files(tmp_path):
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        draw(CHART, tmp_path / name)
    for suffix in ("svg", "png", "csv"):
        once, again = (tmp_path / n / f"example.{suffix}" for n in ("once", "again"))
        assert once.read_bytes() == again.read_bytes()


def test_a_line_is_the_mean_over_seeds_and_its_band_their_spread():
    axes = _figure(CHART).axes[0]
    assert axes.lines[0].get_ydata().tolist() == [2, 2, 4]
    (band,) = axes.collections  # one seed has no band
    low, high = band.get_datalim(axes.transData).get_points()[:, 1]
    assert (low, high) == pytest.approx((2 - 2**0.5, 4 + 2**0.5))


def test_every_series_is_known_without_colour():
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(COLOURS)
    styles = {(str(dash), marker) for dash, marker in zip(DASHES, MARKERS, strict=True)}
    assert len(styles) == len(COLOURS)


def test_neighbouring_colours_differ_in_grey():
    grey = [float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114))) for colour in COLOURS]
    assert min(abs(a - b) for a, b in pairwise(grey)) > 0.1


@pytest.mark.parametrize("kind", ["dots", "scatter"])
def test_the_other_kinds_draw_every_value(kind):
    ticks = ["a", "b", "c"] if kind == "dots" else []
    series = [
        Series("ours", [0, 1, 2], [[1.0, 2.0, 3.0]]),
        Series("theirs", [0, 1, 2], [[3, 2, 1]]),
    ]
    axes = _figure(Chart("x", "", "", "", series, kind, ticks=ticks)).axes[0]
    drawn = [line.get_xdata() if kind == "dots" else line.get_ydata() for line in axes.lines]
    assert [list(values) for values in drawn if len(values) == 3] == [[1, 2, 3], [3, 2, 1]]
    if ticks:
        assert [label.get_text() for label in axes.get_yticklabels()] == ticks


SMALL = Series("a seed", [0, 1], [[0.1302, 0.1490], [0.1298, 0.1492]])
DOTS = Chart("dots", "Dots", "Recall@20", "", [SMALL], "dots", ticks=["linear", "residual"])
SHIFTS = Chart("shifts", "Shifts", "epoch", "shift", [Series("t", [0, 8], [[0.0, -0.2]])])
NOTED = [
    Series(
        "ours", [60, 130, 165], [[0.152, 0.1545, 0.1544]], ["LightGCN", "RK4", "Dormand-Prince"]
    ),
    Series("theirs", [460, 19000], [[0.1545, 0.1544]], ["RK4", "Dormand-Prince"]),
]
SCATTER = Chart("scatter", "Time", "ms", "Recall@20", NOTED, "scatter", log_x=True)


def _boxes(figure, texts):
    """Where non-empty texts are, in pixels, once the layout is made as for a file."""
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    shown = [text for text in texts if text.get_text() and text.get_visible()]
    return [Text.get_window_extent(text) for text in shown]  # without the line to its point


@pytest.mark.parametrize("chart", [CHART, DOTS, SHIFTS, SCATTER], ids=lambda chart: chart.name)
def test_titles_and_labels_are_inside_the_picture(chart):
    figure = _figure(chart)
    (axes,) = figure.axes
    title = next(text for text in axes.findobj(Text) if text.get_text() == chart.title)
    texts = [title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
    for box in _boxes(figure, texts):
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


def test_the_numbers_of_an_axis_do_not_run_into_each_other():
    figure = _figure(DOTS)
    boxes = _boxes(figure, figure.axes[0].get_xticklabels())
    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_notes_do_not_cover_each_other():
    figure = _figure(SCATTER)
    boxes = _boxes(figure, figure.axes[0].texts)
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_panels_of_the_same_series_share_a_legend_beneath_them():
    figure = _panels([CHART, CHART])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["steady", "falling"]
    _boxes(figure, [])
    below = min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert legend.get_window_extent().y1 <= below


def test_panels_of_other_series_have_their_own_legends():
    other = Chart("other", "Other", "x", "y", [SHIFTS.series[0], Series("u", [0, 8], [[1.0, 2.0]])])
    figure = _panels([CHART, other, DOTS])
    legends = [part.legends for part in figure.subfigs]
    assert [len(found) for found in legends] == [1, 1, 0]
    assert [text.get_text() for text in legends[1][0].get_texts()] == ["t", "u"]

from __future__ import annotations

import csv
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from ltocf.pictures.charts import COLOURS, DASHES, MARKERS, Chart, Series, _figure, draw

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

"""Quantiles of answering times by route, from the histograms that Prometheus reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from prometheus_client.core import Metric

# Narrow enough that a quantile read from them is off by a third at most.
BUCKETS = (
    *(0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03),
    *(0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 30.0),
)
# Of a histogram: for each bound in seconds, how many requests took at most that long.
Counts = Mapping[float, float]


class RouteTimes(NamedTuple):
    route: str
    answered: int
    failed: int  # with 5xx
    p50_milliseconds: float | None
    p99_milliseconds: float | None


def quantile(counts: Counts, share: float) -> float | None:
    """The time within which this share was answered, interpolated linearly between two bounds;
    beyond the last bound, that bound. None for an empty histogram."""
    bounds = sorted(counts)
    total = counts[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    wanted, low, below = share * total, 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= wanted:
            if bound == inf:
                return low
            inside = counts[bound] - below
            return low + (bound - low) * (wanted - below) / inside if inside else bound
        low, below = bound, counts[bound]
    return low


def route_times(metrics: Iterable[Metric]) -> list[RouteTimes]:
    """A line for each route, those with most requests first."""
    counts: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    answered: dict[str, float] = defaultdict(float)
    failed: dict[str, float] = defaultdict(float)
    for metric in metrics:
        for sample in metric.samples:
            if sample.name == "ltocf_request_seconds_bucket":
                counts[sample.labels["route"]][float(sample.labels["le"])] += sample.value
            elif sample.name == "ltocf_requests_total":
                answered[sample.labels["route"]] += sample.value
                if sample.labels["status"].startswith("5"):
                    failed[sample.labels["route"]] += sample.value
    lines = [
        RouteTimes(
            route,
            int(answered[route]),
            int(failed[route]),
            _milliseconds(quantile(counts[route], 0.5)),
            _milliseconds(quantile(counts[route], 0.99)),
        )
        for route in counts
    ]
    return sorted(lines, key=lambda line: (-line.answered, line.route))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def times_of(lines: Sequence[RouteTimes], route: str) -> RouteTimes:
    return next(
        (line for line in lines if line.route == route), RouteTimes(route, 0, 0, None, None)
    )

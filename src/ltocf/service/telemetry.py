"""Figures of the service for Prometheus and for the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from ltocf.service.events import Quality
from ltocf.service.live import Live

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where several workers count together


class Requests(NamedTuple):
    answered: int
    failed: int  # with 5xx
    mean_milliseconds: float


class Telemetry:
    def __init__(self, live: Live) -> None:
        own = CollectorRegistry()
        self.live, self.registry = live, own
        labels = ["method", "route", "status"]
        self.requests = Counter("ltocf_requests", "Requests answered.", labels, registry=own)
        self.seconds = Histogram(
            "ltocf_request_seconds", "Time to answer.", ["route"], buckets=BUCKETS, registry=own
        )
        self.events = Counter("ltocf_events", "Events committed.", registry=own)
        if SHARED in os.environ:
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """In Prometheus' own format; reads the store."""
        shown = CollectorRegistry()
        shown.register(_OfStore(self.live))
        return generate_latest(self.registry) + generate_latest(shown)

    def totals(self) -> Requests:
        count = failed = seconds = 0.0
        for metric in self.registry.collect():
            for sample in metric.samples:
                if sample.name == "ltocf_requests_total":
                    count += sample.value
                    failed += sample.value * sample.labels["status"].startswith("5")
                elif sample.name == "ltocf_request_seconds_sum":
                    seconds += sample.value
        return Requests(int(count), int(failed), 1000 * seconds / max(count, 1))


class _OfStore:
    def __init__(self, live: Live) -> None:
        self.live = live

    def collect(self) -> Iterator[Metric]:
        model = GaugeMetricFamily("ltocf_model_info", "The model served now.", labels=["model"])
        model.add_metric([self.live.served.version], 1)
        yield model
        yield GaugeMetricFamily(
            "ltocf_events_since_training",
            "Events that the model has not learned from.",
            value=self.live.store.last() - self.live.served.trained,
        )
        yield GaugeMetricFamily(
            "ltocf_events_not_judged",
            "Events whose rank was not looked up.",
            value=self.live.judge.passed_over,
        )
        totals = by_model(self.live.store.qualities())
        for name, about in (
            ("events", "Events of people with a history, for items that were new to them."),
            ("hit_rate_at_20", "The share of them whose item was among the first 20."),
            ("mean_reciprocal_rank", "The mean of 1 / rank of their items."),
        ):
            family = GaugeMetricFamily(f"ltocf_online_{name}", about, labels=["model"])
            for line in totals:
                rates = {"hit_rate_at_20": line.hits, "mean_reciprocal_rank": line.reciprocal}
                family.add_metric([line.model], rates.get(name, line.events**2) / line.events)
            yield family


def by_model(lines: Iterable[Quality]) -> list[Quality]:
    """The hours of each model as one line, in the order of their first hour."""
    totals: dict[str, Quality] = {}
    for line in lines:
        sums = totals.get(line.model, Quality(line.model, line.hour, 0, 0, 0.0))
        totals[line.model] = Quality(
            line.model,
            min(sums.hour, line.hour),
            sums.events + line.events,
            sums.hits + line.hits,
            sums.reciprocal + line.reciprocal,
        )
    return list(totals.values())

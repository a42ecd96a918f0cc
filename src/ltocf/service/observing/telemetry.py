"""Figures of the service for Prometheus and for the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from ltocf.service.engine import Engine
from ltocf.service.experiments.metrics import experiment_metrics
from ltocf.service.experiments.report import report_of
from ltocf.service.observing.quantiles import BUCKETS
from ltocf.service.page import STATIC
from ltocf.service.store.events import Quality

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the folder in which workers share their counts


class Requests(NamedTuple):
    answered: int
    failed: int  # with 5xx
    mean_milliseconds: float


class Telemetry:
    def __init__(self, live: Engine) -> None:
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
        route = "/static" if route.startswith(STATIC) else route.replace(":id}", "}")
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """In Prometheus' own format; never waits for the store."""
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
    def __init__(self, live: Engine) -> None:
        self.live = live

    def collect(self) -> Iterator[Metric]:
        model = GaugeMetricFamily("ltocf_model_info", "The model served now.", labels=["model"])
        model.add_metric([self.live.served.version], 1)
        yield model
        yield GaugeMetricFamily(
            "ltocf_events_since_training",
            "Events that the model has not learned from.",
            value=self.live.monitor.last - self.live.served.trained,
        )
        for what, works in (
            ("reading", self.live.monitor.reading),
            ("writing", self.live.monitor.writing),
        ):
            about = f"Whether {what} the store of events works."
            yield GaugeMetricFamily(f"ltocf_store_{what}", about, value=float(works))
        yield GaugeMetricFamily(
            "ltocf_events_not_judged",
            "Events whose rank was not looked up.",
            value=self.live.judge.passed_over,
        )
        if self.live.experiment is not None:
            yield from experiment_metrics(report_of(self.live.experiment, self.live.served.version))
        totals = by_model(self.live.monitor.qualities)
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

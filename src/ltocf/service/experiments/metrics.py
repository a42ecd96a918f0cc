"""An experiment's figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from ltocf.service.experiments.report import Report


def experiment_metrics(report: Report) -> Iterator[Metric]:
    people = GaugeMetricFamily(
        "ltocf_experiment_people", "People who got a list, by arm.", labels=["arm"]
    )
    rates = GaugeMetricFamily(
        "ltocf_experiment_rate", "Share of people, by arm.", labels=["arm", "measure"]
    )
    for arm in report["arms"]:
        people.add_metric([arm["name"]], arm["people"])
        for measure in ("hit_rate", "conversion"):
            if arm[measure] is not None:
                rates.add_metric([arm["name"], measure], arm[measure])
    evidence = GaugeMetricFamily(
        "ltocf_experiment_evidence",
        "Evidence that two arms differ; decided once it has reached ltocf_experiment_needed.",
        labels=["arms", "measure"],
    )
    needed = GaugeMetricFamily(
        "ltocf_experiment_needed", "Evidence that decides.", labels=["arms", "measure"]
    )
    decided = GaugeMetricFamily(
        "ltocf_experiment_decided", "1 if the arms differ.", labels=["arms", "measure"]
    )
    for verdict in report["verdicts"]:
        labels = [" ".join(verdict["arms"]), verdict["measure"]]
        evidence.add_metric(labels, verdict["evidence"])
        needed.add_metric(labels, verdict["needed"])
        decided.add_metric(labels, float(verdict["decided"]))
    yield from (people, rates, evidence, needed, decided)

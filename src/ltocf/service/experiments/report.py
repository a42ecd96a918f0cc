"""The results of an experiment so far: a line for each arm, and verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltocf.service.experiments.arms import Arm, share_of
from ltocf.service.experiments.ledger import ArmCounts, arm_counts, paired_counts
from ltocf.service.experiments.running import SHADOW, Experiment
from ltocf.service.experiments.verdicts import (
    ALPHA,
    Counts,
    interval,
    log_evidence,
    log_paired_evidence,
)

MEASURES = {"hit_rate": "hit rate@20", "conversion": "conversion"}
NOTHING = ArmCounts(0, Counts(), Counts())
Report = dict[str, Any]


def report_of(experiment: Experiment, current_version: str) -> Report:
    """With a probability of at least 95 per cent, none of all verdicts is wrong."""
    counts = arm_counts(experiment.store, experiment.name, experiment.closed_before)
    if experiment.split is None:
        return _in_shadow(experiment, current_version, counts.get(SHADOW, NOTHING))
    arms = experiment.split.arms
    first, others = arms[0], arms[1:]
    alpha = ALPHA / (len(others) * len(MEASURES))
    versions = {word: served.version for word, served in experiment.models.items()}
    return {
        "name": experiment.name,
        "shadow": False,
        "arms": [
            _line(arm.name, versions.get(arm.version, current_version), arm.share, counts)
            for arm in arms
        ],
        "verdicts": [
            _verdict(measure, (first, arm), counts, alpha) for arm in others for measure in MEASURES
        ],
    }


def _line(name: str, version: str, share: float, counts: dict[str, ArmCounts]) -> Report:
    found = counts.get(name, NOTHING)
    return {
        "name": name,
        "version": version,
        "share": share,
        "shadow": False,
        "people": found.people,
        **_measured("hit_rate", "hit_interval", found.hits),
        **_measured("conversion", "conversion_interval", found.conversions),
    }


def _measured(rate: str, between: str, counts: Counts) -> Report:
    found = interval(counts)
    return {
        rate: counts.taken / counts.people if counts.people else None,
        between: None if found is None else found._asdict(),
        f"{rate}_people": counts.people,
    }


def _verdict(
    measure: str, pair: tuple[Arm, Arm], counts: dict[str, ArmCounts], alpha: float
) -> Report:
    one, other = pair
    field = "hits" if measure == "hit_rate" else "conversions"
    a, b = (getattr(counts.get(arm.name, NOTHING), field) for arm in pair)
    share = share_of(one, other)
    log_found = float(log_evidence(a.taken, a.people - a.taken, b.taken, b.people - b.taken, share))
    decided = log_found >= -np.log(alpha)
    label = MEASURES[measure]
    if decided:
        better, worse = (other, one) if b.taken * a.people > a.taken * b.people else (one, other)
        sentence = f"{better.name} has a better {label} than {worse.name}."
    else:
        sentence = f"{one.name} and {other.name} cannot be told apart by {label} yet."
    return {
        "measure": measure,
        "arms": [one.name, other.name],
        "decided": bool(decided),
        "evidence": _evidence(log_found),
        "needed": 1 / alpha,
        "sentence": sentence,
    }


def _evidence(log_found: float) -> float:
    """The evidence as a finite number, since JSON has no infinity."""
    return float(np.exp(min(log_found, 200.0)))


def _in_shadow(experiment: Experiment, current_version: str, shown: ArmCounts) -> Report:
    judged, hits, only_shown, only_shadow = paired_counts(experiment.store, experiment.name)
    assert experiment.shadow is not None
    served = experiment.models.get(experiment.shadow)
    log_found = float(log_paired_evidence(only_shown, only_shadow))
    decided = log_found >= -np.log(ALPHA)
    better = "the version in the shadow" if only_shadow > only_shown else "the version in use"
    sentence = (
        f"{better[0].upper()}{better[1:]} has a better hit rate@20."
        if decided
        else "The two versions cannot be told apart by hit rate@20 yet."
    )
    verdict = {
        "measure": "hit_rate",
        "arms": ["in use", SHADOW],
        "decided": bool(decided),
        "evidence": _evidence(log_found),
        "needed": 1 / ALPHA,
        "sentence": sentence,
    }
    arms = [
        _line("in use", current_version, 1.0, {"in use": shown}),
        _line(SHADOW, "" if served is None else served.version, 0.0, {})
        | {"shadow": True, "people": shown.people}
        | _measured("hit_rate", "hit_interval", Counts(judged, hits)),
    ]
    return {"name": experiment.name, "shadow": True, "arms": arms, "verdicts": [verdict]}

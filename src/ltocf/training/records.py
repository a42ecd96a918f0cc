"""What training records: a line of history per epoch, and the state to continue from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # a service reads histories without loading torch
    from torch import Tensor

    from ltocf.ranking.metrics import Metrics

SELECT_BY = "recall@20"
# The stages of a fit: training that chooses the epoch, then training on all pairs. Where no
# validation chooses the epoch, a stage in which only the times learn may come first.
Stage = Literal["times", "choosing", "all pairs"]


def merit(metrics: Metrics) -> float:
    """What models are compared by: how many held-out items they find, and how far up. By Recall@20
    alone, two models that find the same number would tie, and chance would choose."""
    return metrics["recall@20"] + metrics["ndcg@20"]


@dataclass(frozen=True)
class EpochRecord:
    """One line of history.jsonl."""

    epoch: int
    loss: float
    seconds: float
    times: list[float] = field(default_factory=list)
    metrics: Metrics = field(default_factory=dict)
    # How many users were ranked for the metrics; 0 means all who have held-out items.
    sampled_users: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        """As progress shows it."""
        parts = [f"loss {self.loss:.4f}"]
        if self.metrics:
            sample = f" of {self.sampled_users:,} users" if self.sampled_users else ""
            parts.append(metric_text(self.metrics) + sample)
        if self.times:
            parts.append("times " + " ".join(f"{time:.2f}" for time in self.times))
        return "  ".join(parts)


def metric_text(metrics: Metrics) -> str:
    return f"Recall@20 {metrics['recall@20']:.4f}  NDCG@20 {metrics['ndcg@20']:.4f}"


def with_record(records: list[EpochRecord], new: EpochRecord) -> list[EpochRecord]:
    """The history with one more epoch. If training restarted from scratch, the new epochs replace
    those of the abandoned training."""
    return [*records[: new.epoch - 1], new]


def best_epoch(records: list[EpochRecord]) -> int | None:
    """The epoch with the best validation metric, or the last epoch without validation; None if
    nothing was recorded."""
    measured = [record for record in records if record.metrics]
    if measured:
        return max(measured, key=lambda record: record.metrics[SELECT_BY]).epoch
    return records[-1].epoch if records else None


@dataclass
class TrainState:
    """Everything that the next epoch depends on, as of the end of `epoch`."""

    epoch: int = 0
    best_epoch: int = 0
    best_metric: float = -math.inf
    stale: int = 0  # evaluations since the best
    stage: Stage = "choosing"
    epochs: int = 0  # how many this stage is planned to have
    tensors: dict[str, Tensor] = field(default_factory=dict)


AfterEpoch = Callable[[TrainState, EpochRecord], None]

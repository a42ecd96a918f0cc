"""What training leaves behind: a line of history an epoch, and the state to go on from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from torch import Tensor

from ltocf.ranking.metrics import Metrics

SELECT_BY = "recall@20"


def merit(metrics: Metrics) -> float:
    """What models are compared by: how much of what was held out they find, and how far up. By
    Recall@20 alone, two that find as much look alike, and chance chooses."""
    return metrics["recall@20"] + metrics["ndcg@20"]


@dataclass(frozen=True)
class EpochRecord:
    """One line of history.jsonl."""

    epoch: int
    loss: float
    seconds: float
    times: list[float] = field(default_factory=list)
    metrics: Metrics = field(default_factory=dict)
    sampled_users: int = 0  # that the metrics are of, if not of all who have held-out items

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


@dataclass
class TrainState:
    """Everything that the next epoch depends on, as of the end of `epoch`."""

    epoch: int = 0
    best_epoch: int = 0
    best_metric: float = -math.inf
    stale: int = 0  # evaluations since the best
    tensors: dict[str, Tensor] = field(default_factory=dict)


AfterEpoch = Callable[[TrainState, EpochRecord], None]

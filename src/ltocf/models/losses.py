"""What training minimises, as functions of the scores of positives and negatives."""

from __future__ import annotations

import math
from typing import Literal

import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor


class LossConfig(BaseModel, frozen=True, extra="forbid"):
    """`[loss]` in a config file."""

    name: Literal["bpr", "softmax", "bsl"] = "bpr"
    negatives: int = Field(1, ge=1)  # unseen items drawn for each positive
    hardest: bool = False  # keep only the negative that the model scores highest
    shared: int = Field(0, ge=0)  # softmax, bsl: negatives drawn once for the whole batch instead
    temperature: float = Field(0.1, gt=0)  # softmax, bsl
    positive_temperature: float = Field(0.1, gt=0)  # bsl
    l2: float = Field(1e-4, ge=0)  # on the rows of the batch in the initial embeddings


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean of -log sigmoid(positive - negative). positive (batch,), negative (batch, n)."""
    return F.softplus(negative - positive.unsqueeze(1)).mean()


def softmax(positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the positive among itself and the negatives (sampled softmax)."""
    logits = F.pad(negative, (1, 0)) / temperature
    logits[:, 0] = positive / temperature
    return F.cross_entropy(logits, logits.new_zeros(len(logits)).long())


def bsl(
    positive: Tensor, negative: Tensor, temperature: float, positive_temperature: float
) -> Tensor:
    """Bilateral softmax loss (Wu et al., 2024): the log-mean-exp of the negatives at one
    temperature against the positive at another; with both equal, softmax over the negatives."""
    pull = positive / positive_temperature
    push = (negative / temperature).logsumexp(1) - math.log(negative.shape[1])
    return (push - pull).mean()


def score_loss(positive: Tensor, negative: Tensor, config: LossConfig) -> Tensor:
    match config.name:
        case "bpr":
            return bpr(positive, negative)
        case "softmax":
            return softmax(positive, negative, config.temperature)
        case "bsl":
            return bsl(positive, negative, config.temperature, config.positive_temperature)

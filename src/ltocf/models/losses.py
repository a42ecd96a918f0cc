"""What training minimises, as functions of the scores of positives and negatives."""

from __future__ import annotations

import logging
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ltocf.config import BPR, BSL, Loss, SLatK, Softmax

COLLAPSED = 1e-3  # from the loss of a model that scores all items alike
logger = logging.getLogger(__name__)


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean of -log sigmoid(positive - negative). positive (batch,), negative (batch, n)."""
    return F.softplus(negative - positive.unsqueeze(1)).mean()


def softmax(positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the positive among itself and the negatives (sampled softmax)."""
    return _softmax_terms(positive, negative, temperature).mean()


def _softmax_terms(positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    logits = F.pad(negative, (1, 0)) / temperature
    logits[:, 0] = positive / temperature
    return F.cross_entropy(logits, logits.new_zeros(len(logits)).long(), reduction="none")


def bsl(
    positive: Tensor, negative: Tensor, temperature: float, positive_temperature: float
) -> Tensor:
    """Bilateral softmax loss (Wu et al., 2024): the log-mean-exp of the negatives at one
    temperature against the positive at another; with both equal, softmax over the negatives."""
    pull = positive / positive_temperature
    push = (negative / temperature).logsumexp(1) - math.log(negative.shape[1])
    return (push - pull).mean()


def slatk(
    positive: Tensor,
    negative: Tensor,
    thresholds: Tensor,
    temperature: float,
    weight_temperature: float,
) -> Tensor:
    """SL@K (Yang et al., "Breaking the top-K barrier", KDD 2025): softmax, each positive times
    sigmoid((positive - the user's threshold) / weight_temperature). thresholds (batch,).

    Weights have gradients too, as in the authors' code, whose softmax leaves the positive out of
    the sum."""
    weights = torch.sigmoid((positive - thresholds) / weight_temperature)
    return (weights * _softmax_terms(positive, negative, temperature)).mean()


def score_loss(
    positive: Tensor, negative: Tensor, config: Loss, thresholds: Tensor | None = None
) -> Tensor:
    """`thresholds` are what `SLatK` weighs by: of each positive's user, the k-th largest score."""
    match config:
        case BPR():
            return bpr(positive, negative)
        case BSL():
            return bsl(positive, negative, config.temperature, config.positive_temperature)
        case SLatK():
            assert thresholds is not None
            temperatures = config.temperature, config.weight_temperature
            return slatk(positive, negative, thresholds, *temperatures)
        case Softmax():
            return softmax(positive, negative, config.temperature)


def warn_of_collapse(mean_loss: float, config: Loss) -> None:
    """Warn if embeddings have shrunk until all items score alike, from which training does not
    recover."""
    alike = torch.zeros(1, 1 if isinstance(config, BPR) else config.negatives)
    if abs(mean_loss - float(score_loss(alike[:, 0], alike, config, alike[:, 0]))) < COLLAPSED:
        logger.warning(
            f"the loss stands at {mean_loss:.4f}, that of a model to which all items are alike: "
            "nothing is being learned; use start=spectral, fewer negatives or a smaller l2"
        )

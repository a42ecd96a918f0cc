"""A run's weights and its scorer, in two files: arrays that both need are stored only once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ltocf.data.interactions import Interactions
from ltocf.runs.run_files import RunFiles
from ltocf.scorers.scorer import Scorer
from ltocf.scorers.stored import pack, unpack
from ltocf.storage.arrays import Arrays

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, SCORER = "weights.safetensors", "scorer.safetensors"


def as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """The tensors as arrays, without copying those that are on the CPU."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in tensors.items()}


def write_weights(files: RunFiles, weights: Mapping[str, Tensor]) -> None:
    """Write the weights and remove a scorer that was made from other weights."""
    if (files.path / SCORER).exists():
        files.remove(SCORER)
    files.put_arrays(WEIGHTS, as_arrays(weights), {})


def write_scorer(files: RunFiles, scorer: Scorer, weights: Mapping[str, Tensor]) -> None:
    """Save the scorer beside the weights, if it can be saved."""
    if (parts := scorer.parts()) is not None:
        stored = pack(parts, as_arrays(weights))
        files.put_arrays(SCORER, stored.arrays, {"scorer": json.dumps(stored.description)})


def read_scorer(files: RunFiles, train: Interactions) -> Scorer:
    """The saved scorer of a model that has learned from `train`."""
    own, about = files.arrays(SCORER)
    weights = files.arrays(WEIGHTS)[0] if files.exists(WEIGHTS) else {}
    try:
        return unpack(json.loads(about["scorer"]), own, weights, train)
    except (KeyError, ValueError, TypeError):
        raise files.damaged(SCORER, "is not one that ltocf wrote") from None

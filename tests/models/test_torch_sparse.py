"""The contract of the models that train on a GPU, on the operations that would run there.

Where compiled kernels cannot read a tensor, torch's sparse product and torch's gathers do the work.
Here they are made to on the CPU; no GPU has been met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from ltocf.graph import bipartite
from ltocf.graph.neighbours import Neighbours
from ltocf.models import MODELS, pair_scores
from tests.models import test_contract as contract

ON_GPU = [name for name, model in MODELS.items() if model.trains_on_gpu]
PROMISES = [
    value
    for key, value in vars(contract).items()
    if key.startswith("test_") and "name" in signature(value).parameters
]


@pytest.fixture(scope="module", autouse=True)
def no_kernels() -> Iterator[None]:
    contract.trained.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        for module in (bipartite, pair_scores):
            patch.setattr(module, "kernels_can_read", lambda tensor: False)
        patch.setattr(Neighbours, "chebyshev_sum", _unexpected)
        patch.setattr(Neighbours, "product", _unexpected)
        yield
    contract.trained.cache_clear()


def _unexpected(*of: object) -> None:
    raise AssertionError("a compiled kernel was called")


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", ON_GPU)
def test_without_kernels_too(name: str, promise: Callable[..., Any], tmp_path: Path) -> None:
    more = {"tmp_path": tmp_path} if "tmp_path" in signature(promise).parameters else {}
    promise(name, **more)

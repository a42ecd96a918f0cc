"""What is drawn of a trained model. It is saved with the run, so that drawing it needs no torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ltocf.errors import ConfigError

if TYPE_CHECKING:
    from ltocf.models.base import Model

PORTRAIT = "portrait.json"
POINTS = 101  # of a drawn response


class Portrait(NamedTuple):
    times: list[float]  # when the states of an ODE are read
    response: dict[str, list[float]] | None  # "x", and the response at x for each named curve

    @classmethod
    def of(cls, model: Model) -> Portrait:
        import torch

        try:
            responses = model.responses()
        except ConfigError:  # the model is not a polynomial of the graph
            return cls(model.extracted_times(), None)
        x = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
        curves = {name: of(x).detach().tolist() for name, of in responses.items()}
        return cls(model.extracted_times(), {"x": x.tolist()} | curves)

    @classmethod
    def from_json(cls, text: str) -> Portrait:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(self._asdict()) + "\n"

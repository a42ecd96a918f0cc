"""GET /model: what is served, how it was trained, and how it does."""

from __future__ import annotations

from typing import Any

import torch
from fastapi import APIRouter, Request, Response

from ltocf.errors import ConfigError
from ltocf.service.live import Live
from ltocf.service.replies import ModelOut
from ltocf.service.routes.common import answer, live_of
from ltocf.service.served import Served
from ltocf.service.telemetry import Telemetry, by_model

router = APIRouter()
POINTS = 101  # of a drawn response
HOURS = 168  # of a drawn hit rate


@router.get("/model", response_model=ModelOut)
async def model(request: Request) -> Response:
    """The model served now: its data, its training, its accuracy offline and online."""
    live = live_of(request)
    return answer(await live.ask(lambda: describe(live, live.served, request.app.state.telemetry)))


def describe(live: Live, served: Served, telemetry: Telemetry) -> dict[str, Any]:
    recommender, lines = served.recommender, live.store.qualities()
    return {
        "model": served.version,
        "name": recommender.config.model_name,
        "data": {"name": recommender.dataset.name, **recommender.dataset.counts},
        "explains": served.explains,
        "metrics": dict(served.metrics),
        "epochs": [
            {"epoch": record.epoch, "loss": record.loss, "metrics": record.metrics}
            for record in served.epochs
        ],
        "times": recommender.model.extracted_times(),
        "response": response_curves(served),
        "events": {"all": live.store.last(), "since_training": live.store.last() - served.trained},
        "online": [line._asdict() for line in by_model(lines)],
        "hours": [line._asdict() for line in lines[-HOURS:]],
        "requests": telemetry.totals()._asdict(),
    }


@torch.no_grad()
def response_curves(served: Served) -> dict[str, list[float]] | None:
    """h over the spectrum of the graph, by name, with x among them; none for other models."""
    try:
        responses = served.recommender.model.responses()
    except ConfigError:
        return None
    x = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    return {"x": x.tolist()} | {name: of(x).tolist() for name, of in responses.items()}

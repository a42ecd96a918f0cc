"""GET /model: the model in use, how it was trained, and its accuracy."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ltocf.errors import RunError
from ltocf.runs.run import Portrait
from ltocf.service.boards import KINDS, categories
from ltocf.service.engine import Engine
from ltocf.service.observing.telemetry import Telemetry, by_model
from ltocf.service.routes.common import answer, live_of
from ltocf.service.served_model import ServedModel
from ltocf.service.wire.replies import ModelOut

router = APIRouter()
HOURS = 168  # of the hit rate that the page draws


@router.get("/model", response_model=ModelOut)
async def model(request: Request) -> Response:
    """The model served now: its data, its training, its accuracy offline and online."""
    live = live_of(request)
    return answer(await live.ask(lambda: describe(live, live.served, request.app.state.telemetry)))


def describe(live: Engine, served: ServedModel, telemetry: Telemetry) -> dict[str, Any]:
    recommender, lines = served.recommender, live.monitor.qualities
    portrait = _portrait(served)
    return {
        "model": served.version,
        "name": recommender.config.model_name,
        "data": {"name": recommender.dataset.name, **recommender.dataset.counts},
        "explains": served.explains,
        "categories": categories(served),
        "boards": list(KINDS),
        "metrics": dict(served.metrics),
        "epochs": [
            {"epoch": record.epoch, "loss": record.loss, "metrics": record.metrics}
            for record in served.epochs
        ],
        "times": portrait.times,
        "response": portrait.response,
        "events": {
            "all": live.monitor.last,
            "since_training": max(0, live.monitor.last - served.trained),
        },
        "online": [line._asdict() for line in by_model(lines)],
        "hours": [line._asdict() for line in lines[-HOURS:]],
        "requests": telemetry.totals()._asdict(),
    }


def _portrait(served: ServedModel) -> Portrait:
    if served.portrait is not None:
        return served.portrait
    try:
        return Portrait.of(served.recommender.model)
    except RunError:  # the run was removed in the meantime
        return Portrait([], None)

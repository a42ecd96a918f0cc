"""POST /events"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Header, Request, Response

from ltocf.service.events import Event, now
from ltocf.service.replies import Committed
from ltocf.service.routes.common import NOT_FOUND, answer, live_of
from ltocf.service.schemas import EventIn, EventsIn, OneOrMany, Text

router = APIRouter()


@router.post("/events", status_code=201, response_model=Committed, responses=NOT_FOUND)
async def add_events(
    request: Request,
    body: Annotated[OneOrMany, Body()],
    idempotency_key: Annotated[
        Text | None, Header(description="Names the whole request, event by event.")
    ] = None,
) -> Response:
    """Commit one event or many. With the answer they are on disk, and the next list knows them."""
    live = live_of(request)
    served = live.served
    given = body.events if isinstance(body, EventsIn) else [body]
    served.item_rows([event.item for event in given])
    events = [_event(event, place, idempotency_key) for place, event in enumerate(given)]
    added = await live.commit((served, events))
    request.app.state.telemetry.events.inc(len(added))
    return answer({"accepted": len(added), "repeated": len(events) - len(added)}, 201)


def _event(given: EventIn, place: int, request_key: str | None) -> Event:
    key = given.key
    if key is None and request_key is not None:
        key = f"{request_key}\n{place}"
    if isinstance(given.time, datetime):
        moment = round(given.time.timestamp() * 1e6)
    else:
        moment = now() if given.time is None else round(given.time * 1e6)
    return Event(str(given.user), str(given.item), moment, given.kind, key)

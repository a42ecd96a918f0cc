"""POST /events, and DELETE /events/{key}"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Header, Path, Request, Response

from ltocf.service.problems import Conflict, Unknown
from ltocf.service.routes.common import CONFLICT, NOT_FOUND, answer, live_of
from ltocf.service.store.events import Event, now
from ltocf.service.store.impressions import Impression
from ltocf.service.store.recent import take_back
from ltocf.service.wire.replies import EventReceipt, TakenBack
from ltocf.service.wire.requests import EventIn, EventsIn, OneOrMany, Text

router = APIRouter()


DAY = 86_400_000_000  # in microseconds


@router.post(
    "/events",
    status_code=201,
    response_model=EventReceipt,
    responses=CONFLICT,
)
async def add_events(
    request: Request,
    body: Annotated[OneOrMany, Body()],
    idempotency_key: Annotated[
        Text | None, Header(description="Names the whole request, event by event.")
    ] = None,
) -> Response:
    """Commit one event or many. When the answer comes they are on disk,
    and the next list takes them into account.

    An event of an item that is not in the catalogue counts from the moment the item is added."""
    live = live_of(request)
    served = live.served
    given = body.events if isinstance(body, EventsIn) else [body]
    events = [_event(event, place, idempotency_key) for place, event in enumerate(given)]
    added = await live.commit((served, events))
    request.app.state.telemetry.events.inc(len(added))
    new = {event.key for event in added}
    shown = [
        Impression(event.user, str(item), taken=str(item) == event.item)
        for event, one in zip(events, given, strict=True)
        if event.key is None or event.key in new
        for item in one.shown or ()
    ]
    if shown:
        await live.count_shown(served.version, shown)
    return answer({"accepted": len(added), "repeated": len(events) - len(added)}, 201)


@router.delete(
    "/events/{key:id}",
    response_model=TakenBack,
    responses=NOT_FOUND | CONFLICT,
)
async def take_event_back(
    request: Request,
    key: Annotated[Text, Path(description="The key of the event, as it was sent.")],
) -> Response:
    """Remove one event, as if it had never come. Events that the model has learned from cannot be
    removed."""
    live = live_of(request)
    after = live.served.trained
    event = await live.write(lambda wanted: take_back(live.store, key, after=after, wanted=wanted))
    if event is None:
        raise Unknown("no event has this key")
    if event.number <= after:
        raise Conflict("the model has learned from this event, so it cannot be taken back")
    return answer({"removed": 1})


def _event(given: EventIn, place: int, request_key: str | None) -> Event:
    key = given.key
    if key is None and request_key is not None:
        key = f"{request_key}\n{place}"
    if isinstance(given.time, datetime):
        moment = round(given.time.timestamp() * 1e6)
    else:
        moment = now() if given.time is None else round(given.time * 1e6)
    if not 0 <= moment <= now() + DAY:  # clocks differ, but not by more than a day
        raise Conflict("time: lies before 1970 or more than a day ahead of this service's clock")
    return Event(str(given.user), str(given.item), moment, given.kind, key)

"""Figures for operators (answers, events, versions), and changing the version in use."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ltocf.errors import RunError
from ltocf.runs.versions import promote, rollback, versions
from ltocf.service.experiments.report import report_of
from ltocf.service.observing.quantiles import route_times, times_of
from ltocf.service.observing.replies import FeedOut, OperationsOut, VersionInUse
from ltocf.service.observing.telemetry import by_model
from ltocf.service.problems import Conflict
from ltocf.service.routes.common import answer, live_of
from ltocf.service.store.events import now
from ltocf.service.store.recent import HOUR, events_by_hour, events_since, latest_events
from ltocf.service.store.updates import latest_updates
from ltocf.service.wire.replies import ProblemOut

router = APIRouter()
HOURS, UPDATES = 48, 10
LISTS = "/users/{user}/recommendations"


@router.get("/operations", response_model=OperationsOut)
async def operations(request: Request) -> Response:
    """Figures for operators: answering times, events, updates, versions, the experiment."""
    live, state = live_of(request), request.app.state
    root: Path | None = getattr(state, "run", None)
    routes = route_times(state.telemetry.registry.collect())
    hour = now() // HOUR

    def read() -> dict[str, Any]:
        counted = events_by_hour(live.store, since_hour=hour - HOURS + 1)
        first = min(counted, default=hour)
        live_lines = {line.model: line for line in by_model(live.store.qualities())}
        return {
            "updates": [
                line._asdict() | {"time": _moment(line.time)}
                for line in latest_updates(live.store, UPDATES)
            ],
            "versions": [] if root is None else _versions(root, live_lines),
            "events_by_hour": [
                {"hour": one, "events": counted.get(one, 0)} for one in range(first, hour + 1)
            ]
            if counted
            else [],
            "shown": [line._asdict() for line in live.store.shown_qualities()],
            "events_last_hour": events_since(live.store, now() - HOUR),
            "experiment": None
            if live.experiment is None
            else report_of(live.experiment, live.served.version),
        }

    found = await live.ask(read)
    return answer(
        {
            **found,
            "model": live.served.version,
            "routes": [line._asdict() for line in routes],
            "lists": times_of(routes, LISTS)._asdict(),
        }
    )


@router.get("/feed", response_model=FeedOut)
async def feed(
    request: Request, k: Annotated[int, Query(ge=1, le=100, description="How many.")] = 30
) -> Response:
    """The latest events of everybody, and the latest lists of the process that answers this."""
    live, lists = live_of(request), request.app.state.feed
    served = live.served
    lists.follow(live.monitor.markers, live.store.forgotten_among)
    events = await live.ask(lambda: latest_events(live.store, k))
    rows = served.seen.item_ids.find([event.item or "" for event in events])
    lines = [
        {
            "number": event.number,
            "user": event.user,
            "kind": event.kind,
            "time": _moment(event.time),
            **(
                served.item(int(row))
                if row >= 0
                else {"item": event.item, "name": event.item, "about": {}}
            ),
        }
        for event, row in zip(events, rows, strict=True)
    ]
    return answer({"events": lines, "lists": lists.latest(k)})


@router.post(
    "/versions/rollback", response_model=VersionInUse, responses={409: {"model": ProblemOut}}
)
async def roll_back(request: Request) -> Response:
    """Return to the previous version; calling it again returns to the later one."""
    return await _change(request, rollback)


@router.post(
    "/versions/promote", response_model=VersionInUse, responses={409: {"model": ProblemOut}}
)
async def promote_candidate(request: Request) -> Response:
    """Use the candidate from now on; the version in use until now is kept for a rollback."""
    return await _change(request, promote)


async def _change(request: Request, change: Any) -> Response:
    root: Path | None = getattr(request.app.state, "run", None)
    if root is None:
        raise Conflict("this service was not started from a run, so it has one version only")

    def turn() -> dict[str, Any]:
        try:
            found: dict[str, Any] = change(root)._asdict()
        except RunError as refusal:
            raise Conflict(str(refusal)) from None
        return found

    return answer(await live_of(request).ask(turn))


def _moment(microseconds: int) -> str:
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(microseconds)


def _versions(root: Path, live_lines: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for one in versions(root):
        line = live_lines.get(str(one.version))
        found.append(
            {
                "version": one.version,
                "role": one.role,
                "made": datetime.fromtimestamp(one.made, UTC).isoformat(timespec="seconds"),
                "live_events": 0 if line is None else line.events,
                "live_hits": 0 if line is None else line.hits,
            }
        )
    return found

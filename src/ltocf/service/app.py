"""create_app() receives everything it serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ltocf import __version__
from ltocf.errors import LtocfError
from ltocf.service.access.guard import Guard, Rules
from ltocf.service.boards import Boards
from ltocf.service.engine import FADE_AFTER, Engine
from ltocf.service.observing.feed import Feed
from ltocf.service.observing.request_log import RequestLog
from ltocf.service.observing.telemetry import Telemetry
from ltocf.service.observing.tracing import Tracer
from ltocf.service.page import add_page
from ltocf.service.problems import Problem
from ltocf.service.routes import (
    boards,
    catalogue,
    events,
    impressions,
    items,
    model,
    operations,
    recommendations,
    users,
)
from ltocf.service.routes.common import answer, live_of, of_problem
from ltocf.service.routes.plain_lists import PlainLists
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.wire import replies as s
from ltocf.service.wire.complaints import complaint_of
from ltocf.service.wire.compression import Compression

# What FastAPI says where its own words are no help.
CLEARER = {
    "There was an error parsing the body": "body: cannot be read as JSON in UTF-8",
    "Not Found": "nothing is at this address; /openapi.json lists what there is",
}


def create_app(
    served: ServedModel,
    store: EventStore,
    *,
    rules: Rules = Rules(),  # noqa: B008 - immutable
    timeout_seconds: float = 10.0,
    fade_after: float = FADE_AFTER,
    log_paths: bool = False,
    tracer: Tracer | None = None,
) -> FastAPI:
    """The service of one model and one store of events. `app.state.live.swap` changes the model."""
    live = Engine(served, store, timeout_seconds=timeout_seconds, fade_after=fade_after)
    telemetry = Telemetry(live)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        live.close()
        if tracer is not None:
            tracer.close()

    problem: dict[str, Any] = {"model": s.ProblemOut}
    app = FastAPI(
        title="ltocf",
        version=__version__,
        summary="Recommendations that know what happened a moment ago, with their reasons.",
        docs_url=None,  # FastAPI's pages of documentation load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        # FastAPI's own, which asks for its settings at each request; `tracer` is ours. Old versions
        # have none and ignore this.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        responses={status: problem for status in (400, 401, 403, 413, 421, 422, 429, 503)},
    )
    app.state.live, app.state.telemetry, app.state.feed = live, telemetry, Feed()
    app.state.boards = Boards(store)
    app.state.details = not rules.read_needs_token
    app.add_middleware(PlainLists)
    app.add_middleware(Guard, rules=rules, observe=telemetry.observe)
    app.add_middleware(Compression)
    app.add_middleware(
        RequestLog, model=lambda: live.served.version, paths=log_paths, tracer=tracer
    )
    parts = (events, impressions, recommendations, users, items, catalogue, boards, model)
    for part in (*parts, operations):
        app.include_router(part.router)
    app.state.routes = [route for part in parts for route in part.router.routes]
    _add_operations(app)
    add_page(app)
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(LtocfError, _of_problem)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    return app


def _add_operations(app: FastAPI) -> None:
    @app.get("/health", response_model=s.Status)
    async def health() -> Response:
        """Answers as long as the process runs."""
        return answer({"status": "ok"})

    @app.get("/ready", response_model=s.Readiness, responses={503: {"model": s.Readiness}})
    async def ready(
        request: Request,
        purpose: Annotated[
            Literal["everything", "reading"],
            Query(
                alias="for",
                description="'reading' checks only lists, and not whether events are accepted.",
            ),
        ] = "everything",
    ) -> Response:
        """Whether lists are up to date and events are accepted; never waits for the store."""
        live = live_of(request)
        monitor = live.monitor
        works = monitor.reading if purpose == "reading" else monitor.reading and monitor.writing
        about = {
            "status": "ready" if works else "not ready",
            "model": live.served.version,
            "reading": monitor.reading,
            "writing": monitor.writing,
            "problem": _problem(request.app),
        }
        return answer(about, 200 if works else 503)

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics(request: Request) -> Response:
        """For Prometheus."""
        text = await asyncio.to_thread(request.app.state.telemetry.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _problem(app: FastAPI) -> str | None:
    """What is wrong, for whoever may read: it may name files and hosts, and /ready is open."""
    live: Engine = app.state.live
    problem = live.monitor.problem()
    if app.state.details:
        return problem or live.run_problem
    if problem is not None:
        return "the store of events fails; the log says why"
    return None if live.run_problem is None else "the run cannot be followed; the log says why"


async def _of_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem | LtocfError)
    return of_problem(problem)


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    as_json = "json" in request.headers.get("content-type", "")
    detail = complaint_of(error.errors(), sent_as_json=as_json)
    return answer({"detail": json.dumps(detail)[1:-1]}, 422)


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    response = answer({"detail": CLEARER.get(detail, detail)}, error.status_code)
    response.headers.update(error.headers or {})
    # Several routes may share a path, and each reports only its own method.
    if error.status_code == 405:
        path = request.scope["path"]
        routes = [one for one in request.app.state.routes if one.path_regex.match(path)]
        form = max((one.path for one in routes), key=len, default="")  # an id may contain slashes
        allowed = {method for one in routes if one.path == form for method in one.methods}
        if allowed:
            response.headers["allow"] = ", ".join(sorted(allowed))
    return response

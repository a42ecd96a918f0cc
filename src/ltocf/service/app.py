"""create_app() receives everything it serves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ltocf import __version__
from ltocf.errors import LtocfError
from ltocf.service import replies as s
from ltocf.service.events import EventStore
from ltocf.service.guard import Guard, Rules
from ltocf.service.live import Live
from ltocf.service.problems import Problem
from ltocf.service.routes import events, items, model, recommendations, users
from ltocf.service.routes.common import answer, live_of
from ltocf.service.served import Served
from ltocf.service.telemetry import Telemetry

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}

# Of a union, which is nothing that the client wrote.
TAGS = ("one", "many", "users", "history")
KINDS = ("constrained-str", "constrained-float", "datetime")


def create_app(
    served: Served,
    store: EventStore,
    *,
    rules: Rules = Rules(),  # noqa: B008 - immutable
    timeout_seconds: float = 10.0,
) -> FastAPI:
    """The service of one model and one store of events. `app.state.live.swap` changes the model."""
    live = Live(served, store, timeout_seconds=timeout_seconds)
    telemetry = Telemetry(live)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        live.close()

    problem: dict[str, Any] = {"model": s.ProblemOut}
    app = FastAPI(
        title="ltocf",
        version=__version__,
        summary="Recommendations that know what happened a moment ago, with their reasons.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses={status: problem for status in (400, 401, 413, 421, 422, 429, 503)},
    )
    app.state.live, app.state.telemetry = live, telemetry
    app.add_middleware(Guard, rules=rules, observe=telemetry.observe)
    for part in (events, recommendations, users, items, model):
        app.include_router(part.router)
    _add_operations(app)
    for path, (name, kind) in PAGE.items():
        content = files("ltocf.service").joinpath("static", name).read_bytes()
        app.add_api_route(path, _file(content, kind), include_in_schema=False)
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(LtocfError, _of_error)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    return app


def _add_operations(app: FastAPI) -> None:
    @app.get("/health", response_model=s.Status)
    async def health() -> Response:
        """The process answers."""
        return answer({"status": "ok"})

    @app.get("/ready", response_model=s.Status)
    async def ready(request: Request) -> Response:
        """The model is loaded and the store of events answers."""
        live = live_of(request)
        await live.ask(live.store.last)
        return answer({"status": "ready", "model": live.served.version})

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics(request: Request) -> Response:
        """For Prometheus."""
        text = await live_of(request).ask(request.app.state.telemetry.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _file(content: bytes, kind: str) -> Callable[[], Any]:
    async def send() -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return send


async def _of_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return answer({"detail": problem.detail}, problem.status)


async def _of_error(request: Request, error: Exception) -> Response:
    return answer({"detail": str(error)}, 422)


async def _of_validation(request: Request, error: Exception) -> Response:
    """The first complaint in one line; what was sent may be too odd to be sent back."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = list(first["loc"][1:])
    if place and place[0] in TAGS:
        place = place[1:]
    parts = [str(part) for part in place if part not in KINDS and "(" not in str(part)]
    where = ".".join(parts) or "body"
    return answer({"detail": json.dumps(f"{where}: {first['msg']}")[1:-1]}, 422)


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = answer({"detail": str(error.detail)}, error.status_code)
    response.headers.update(error.headers or {})
    return response

"""The most frequent request, read without the framework: the list of a user, of some length, with
or without reasons."""

from __future__ import annotations

import re
import time

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ltocf.errors import LtocfError
from ltocf.service.problems import Problem
from ltocf.service.routes.common import NO_RULES, of_json, of_problem
from ltocf.service.routes.recommendations import LIST_PATH, USUAL_K, list_for, report, router

# Only ids that need no decoding, and options in the order of the documentation.
PATH = re.compile(r"/users/([A-Za-z0-9_-]{1,64})/recommendations")
QUERY = re.compile(rb"(?:k=([1-9][0-9]{0,2}))?(?:(?:^|&)(reasons=true))?")


class PlainLists:
    """ASGI middleware before the routes. It makes the same list as the route would. FastAPI goes
    through all routes and all possible parameters, which takes longer than making the list.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        (self._route,) = (one for one in router.routes if getattr(one, "path", "") == LIST_PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            path, query = PATH.fullmatch(scope["path"]), QUERY.fullmatch(scope["query_string"])
            if path is not None and query is not None:
                scope["route"] = self._route  # for middleware that counts requests by route
                await _answer(Request(scope, receive), send, path[1], *query.groups())
                return
        await self.app(scope, receive, send)


async def _answer(
    request: Request, send: Send, user: str, k: bytes | None, reasons: bytes | None
) -> None:
    started = time.perf_counter()
    options = USUAL_K if k is None else int(k), False, None, (), reasons is not None, NO_RULES
    try:
        reply = await list_for(request, user, options)
    except (Problem, LtocfError) as refusal:
        await of_problem(refusal)(request.scope, request.receive, send)
        return
    seconds = time.perf_counter() - started
    await of_json(reply.text(with_model=True))(request.scope, request.receive, send)
    report(request, [reply], seconds)  # afterwards, since the client need not wait for it

"""What everybody sees: popular, trending, new."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ltocf.errors import LtocfError
from ltocf.recommend.boards import parse_window
from ltocf.service.problems import Conflict
from ltocf.service.routes.common import NOT_FOUND, K, Where, answer, live_of, rules_of
from ltocf.service.wire.replies import BoardOut, ProblemOut
from ltocf.service.wire.requests import RuleTexts

router = APIRouter()
REFUSALS = NOT_FOUND | {409: {"model": ProblemOut}}
Window = Annotated[
    str | None,
    Query(
        max_length=16,
        description="How far to look back from the latest event, such as 7d.",
        # Only for the schema: a message that quotes a pattern would not help.
        json_schema_extra={"pattern": "^[1-9][0-9]{0,3}[dhm]$"},
    ),
]


@router.get("/popular", response_model=BoardOut, responses=REFUSALS)
async def popular(
    request: Request,
    k: K = 10,
    window: Window = None,
    where: Where = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """What most people touched, ever or within a window."""
    return await _board(request, "popular", k, window, where)


@router.get("/trending", response_model=BoardOut, responses=REFUSALS)
async def trending(
    request: Request,
    k: K = 10,
    window: Window = None,
    where: Where = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Items that are touched more than before, by the lower bound of the growth, so that small
    numbers do not win."""
    return await _board(request, "trending", k, window, where)


@router.get("/new", response_model=BoardOut, responses=REFUSALS)
async def new(
    request: Request,
    k: K = 10,
    window: Window = None,
    where: Where = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """The latest arrivals."""
    return await _board(request, "new", k, window, where)


async def _board(
    request: Request, kind: str, k: int, window: str | None, where: list[str]
) -> Response:
    live, boards = live_of(request), request.app.state.boards
    served = live.served
    span = None if window is None else parse_window(window)
    rules = rules_of(served, RuleTexts(where))
    try:
        rows = await live.ask(lambda: boards.board(served, kind, k, span, rules))
    except LtocfError as missing:  # the data have no times, or no dates of arrival
        raise Conflict(str(missing)) from None
    items = [
        {"rank": rank, **served.item(row), "score": value}
        for rank, (row, value) in enumerate(rows, start=1)
    ]
    return answer({"model": served.version, "board": kind, "items": items})

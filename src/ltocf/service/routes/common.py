"""What several routes share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Receive, Scope, Send

from ltocf.data.interactions import shorten_id
from ltocf.errors import LtocfError
from ltocf.recommend.people import Person
from ltocf.recommend.rules import Rules
from ltocf.service.engine import Engine
from ltocf.service.json_text import to_json
from ltocf.service.problems import Problem, Unknown
from ltocf.service.served_model import ServedModel
from ltocf.service.wire.replies import ProblemOut
from ltocf.service.wire.requests import ANYTHING, MOST_K, AlikeBy, RuleTexts, SearchText, Text

T = TypeVar("T")
IN_ONE_PIECE = 2**18  # bytes of an answer; to copy more would take a millisecond


class AnyText(Convertor[str]):
    """An id as part of a path: it may contain slashes, and newlines too, which Starlette's own
    'path' does not match: an id that was recorded must be found, and forgotten on request."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", AnyText())
# Repeated for old versions of pydantic, in which the outer description of a parameter hides
# the inner one.
PATTERN = {"pattern": ANYTHING}
UserPath = Annotated[
    Text, Path(examples=["ann"], description="A user's id.", json_schema_extra=PATTERN)
]
ItemPath = Annotated[
    Text, Path(examples=["tea"], description="An item's id.", json_schema_extra=PATTERN)
]
K = Annotated[int, Query(ge=1, le=MOST_K, description="How many.")]
Search = Annotated[SearchText, Query(description="What to look for.", json_schema_extra=PATTERN)]
Where = Annotated[
    list[Text],
    Query(max_length=20, description="Conditions that every item meets, such as category=tea."),
]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ProblemOut}}
CONFLICT: dict[int | str, dict[str, Any]] = {409: {"model": ProblemOut}}


def live_of(request: Request) -> Engine:
    live: Engine = request.app.state.live
    return live


def answer(value: Any, status: int = 200) -> Response:
    return of_json(to_json(value).encode(), status)


def of_json(text: bytes, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


class LongJson(Response):
    """JSON that is sent in parts, with other requests in between."""

    media_type = "application/json"

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts
        super().__init__(headers={"content-length": str(sum(map(len, parts)))})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        for place, part in enumerate(self._parts, start=1):
            more = place < len(self._parts)
            await send({"type": "http.response.body", "body": part, "more_body": more})
            await asyncio.sleep(0)


def of_parts(parts: Sequence[bytes]) -> Response:
    """Long JSON in parts, short JSON in one piece, which can be sent in one packet."""
    if sum(map(len, parts)) <= IN_ONE_PIECE:
        return of_json(b"".join(parts))
    return LongJson(parts)


def of_problem(error: Problem | LtocfError) -> Response:
    status, detail = (
        (error.status, error.detail) if isinstance(error, Problem) else (422, str(error))
    )
    return answer({"detail": detail}, status)


class Gone(Problem):
    """The client has disconnected, so nobody would read the answer."""

    status = 499

    def __init__(self) -> None:
        super().__init__("the client has closed the connection")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled if the client disconnects."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_k(k: int, most: int) -> None:
    if k > most:
        raise Problem(f"k={k} is more than there are ({most})")


def known_person(live: Engine, served: ServedModel, user: str) -> Person:
    """The person with their present history; Unknown if neither data nor events have them."""
    person = live.person_now(served, user)
    if served.is_cold(person):
        raise Unknown(f"unknown user {shorten_id(user)}: neither in the data nor in the events")
    return person


async def rule_texts(  # async, since FastAPI calls a plain function on another thread
    where: Where = [],  # noqa: B006 - FastAPI copies it
    boost: Annotated[
        list[Text], Query(max_length=20, description="CONDITION:FACTOR, such as new:1.2.")
    ] = [],  # noqa: B006 - FastAPI copies it
    at_most: Annotated[
        list[Text],
        Query(max_length=20, description="N:ATTRIBUTE: so many of a list may share a value."),
    ] = [],  # noqa: B006 - FastAPI copies it
    pin: Annotated[list[Text], Query(max_length=100, description="Items that come first.")] = [],  # noqa: B006 - FastAPI copies it
    diversity: Annotated[
        float, Query(ge=0, le=1, description="From 0 (by score alone) to 1 (as unlike as can be).")
    ] = 0.0,
    alike_by: Annotated[AlikeBy, Query(description="What makes two items alike.")] = "attributes",
) -> RuleTexts:
    """The rules in a query."""
    return RuleTexts(where, boost, at_most, pin, diversity, alike_by)


Ruled = Annotated[RuleTexts, Depends(rule_texts)]
NO_RULES = RuleTexts([], [], [], [])


def rules_of(served: ServedModel, texts: RuleTexts) -> Rules:
    """The rules of a request. A rule that names an attribute which items do not have gets the same
    status as an unknown item."""
    if texts == NO_RULES:
        return Rules()
    try:
        rules = Rules.parse(
            texts.where,
            boost=texts.boost,
            at_most=texts.at_most,
            pin=texts.pin,
            diversity=texts.diversity,
            by=texts.alike_by,
        )
        served.rules_on(rules)
    except LtocfError as unknown:
        raise Unknown(str(unknown)) from None
    return rules

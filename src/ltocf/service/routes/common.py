"""What several routes share."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from ltocf.data.interactions import shorten_id
from ltocf.recommend.joined import Person
from ltocf.service.live import Live
from ltocf.service.problems import Problem, Unknown
from ltocf.service.replies import ProblemOut
from ltocf.service.schemas import LONGEST_ID, MOST_K, Text
from ltocf.service.served import Served

UserPath = Annotated[Text, Path(examples=["ann"], description="A user's id.")]
ItemPath = Annotated[Text, Path(examples=["tea"], description="An item's id.")]
K = Annotated[int, Query(ge=1, le=MOST_K, description="How many.")]
Search = Annotated[
    str, Query(max_length=LONGEST_ID, pattern=r"^[^\x00]*$", description="What to look for.")
]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ProblemOut}}


def live_of(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


def answer(value: Any, status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), status, media_type="application/json")


def check_k(k: int, most: int) -> None:
    if k > most:
        raise Problem(f"k={k} is more than there are: {most}")


def known_person(live: Live, served: Served, user: str) -> Person:
    """Who they are now; Unknown if there is nothing of them."""
    person: Person = live.person_now(served, user)
    if served.is_cold(person):
        raise Unknown(f"unknown user {shorten_id(user)}: neither in the data nor in the events")
    return person

"""Lists and their reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from ltocf.data.interactions import Id
from ltocf.errors import DataError
from ltocf.recommend.joined import Person, joined_histories
from ltocf.recommend.requests import blocked_items
from ltocf.service.lists import Answer, Wanted
from ltocf.service.lists import reasons as reasons_of
from ltocf.service.problems import Conflict, Unknown
from ltocf.service.replies import ExplanationOut, ListOut, ListsOut, ProblemOut
from ltocf.service.routes.common import (
    NOT_FOUND,
    K,
    UserPath,
    answer,
    check_k,
    known_person,
    live_of,
)
from ltocf.service.schemas import ListsIn, ListsOfUsers, Text
from ltocf.service.served import Served

router = APIRouter()
SomeItems = Annotated[list[Text], Query(max_length=100)]


@router.get("/users/{user:path}/recommendations", response_model=ListOut, responses=NOT_FOUND)
async def recommend(
    request: Request,
    user: UserPath,
    k: K = 10,
    keep_seen: Annotated[bool, Query(description="Also what they already have.")] = False,
    reasons: Annotated[bool, Query(description="Add the exact reasons to each item.")] = False,
    exclude: SomeItems = [],  # noqa: B006 - FastAPI copies it
    candidates: Annotated[list[Text] | None, Query(max_length=100)] = None,
) -> Response:
    """The best items of a user, who may have come a moment ago. Before their first event they get
    what is popular now."""
    live = live_of(request)
    served = live.served
    wanted = _wanted(served, [user], k, keep_seen, candidates, exclude, reasons)
    return answer({"model": served.version} | await live.list_for(wanted[0]))


@router.post("/recommendations", response_model=ListsOut, responses=NOT_FOUND)
async def recommend_many(request: Request, body: Annotated[ListsIn, Body()]) -> Response:
    """Lists of many users, or of somebody new by the items that they have."""
    live = live_of(request)
    served = live.served
    who: list[str | Person]
    if isinstance(body, ListsOfUsers):
        who = [str(user) for user in body.users]
    else:
        who = [Person.of_history(served.item_rows(body.history))]
    wanted = _wanted(
        served, who, body.k, body.keep_seen, body.candidates, body.exclude, body.reasons
    )
    lists = await asyncio.gather(*map(live.list_for, wanted))
    return answer({"model": served.version, "lists": lists})


def _wanted(
    served: Served,
    who: Sequence[str | Person],
    k: int,
    keep_seen: bool,
    candidates: Sequence[Id] | None,
    exclude: Sequence[Id],
    with_reasons: bool,
) -> list[Wanted]:
    check_k(k, len(served.item_ids))
    try:
        blocked = blocked_items(served.seen.item_ids, candidates, exclude)
    except DataError as unknown:
        raise Unknown(str(unknown)) from None
    return [Wanted(served, one, k, keep_seen, blocked, with_reasons) for one in who]


@router.get(
    "/explanations",
    response_model=ExplanationOut,
    responses=NOT_FOUND | {409: {"model": ProblemOut}},
)
async def explain(
    request: Request,
    item: Annotated[Text, Query(examples=["tea"])],
    user: Annotated[Text | None, Query(examples=["ann"])] = None,
    history: Annotated[
        list[Text] | None, Query(max_length=100, description="Of somebody new, the latest last.")
    ] = None,
) -> Response:
    """Why somebody's score of an item is what it is: the exact terms of the sum."""
    live = live_of(request)
    served = live.served
    if user is not None and history is not None:
        raise Conflict("give either user or history")
    row = served.item_row(item)

    def find() -> Answer:
        if user is not None:
            person = known_person(live, served, user)
        else:
            person = Person.of_history(served.item_rows(history or []))
        joined = joined_histories(served.train, [person])
        return reasons_of(served, row, joined, person.row, most=None)

    found = await live.ask(find)
    about = {"model": served.version, "item": served.item(row)}
    return answer(about | ({} if user is None else {"user": user}) | found)

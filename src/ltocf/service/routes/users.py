"""What is known of a user, and who is like them; and forgetting it."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
from fastapi import APIRouter, Request, Response

from ltocf.data.interactions import shorten_id
from ltocf.models.scorer import NOBODY
from ltocf.service.problems import Unknown
from ltocf.service.replies import FoundUsers, HistoryOut, SimilarUsers
from ltocf.service.routes.common import (
    NOT_FOUND,
    K,
    Search,
    UserPath,
    answer,
    check_k,
    known_person,
    live_of,
)

router = APIRouter()


@router.get("/users/{user:path}/history", response_model=HistoryOut, responses=NOT_FOUND)
async def history(request: Request, user: UserPath) -> Response:
    """What a user has, the latest first: the data set and all that happened since."""
    live = live_of(request)
    served = live.served
    person = await live.ask(lambda: known_person(live, served, user))
    items = [
        {**served.item(row), "time": None if time is None else _written(time)}
        for row, time in served.history(person)
    ]
    return answer({"user": user, "known": person.row != NOBODY, "items": items})


def _written(microseconds: int) -> str:
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(microseconds)


@router.get("/users/{user:path}/similar", response_model=SimilarUsers, responses=NOT_FOUND)
async def similar_users(request: Request, user: UserPath, k: K = 10) -> Response:
    """The users most like one who was there in training."""
    live = live_of(request)
    served = live.served
    check_k(k, served.seen.n_users)
    person = await live.ask(lambda: known_person(live, served, user))
    if person.row == NOBODY:
        raise Unknown(f"user {shorten_id(user)} was not there in training, so nobody is like them")
    table = await live.ask(lambda: served.recommender.similar_users(user, k))
    users = table.select("rank", user="similar", score="score").to_dicts()
    return answer({"model": served.version, "user": user, "users": users})


@router.delete("/users/{user:path}", status_code=204, responses=NOT_FOUND)
async def forget(request: Request, user: UserPath) -> Response:
    """Forget a person: their events are removed, and what the data set has of them no longer
    counts; the next update takes it out of the data set too."""
    live = live_of(request)
    served = live.served

    def remove() -> None:
        known_person(live, served, user)
        live.store.forget(user)

    await live.ask(remove)
    return Response(status_code=204)


@router.get("/users", response_model=FoundUsers)
async def find_users(
    request: Request,
    query: Search = "",
    k: K = 10,
) -> Response:
    """Users whose id begins with a text."""
    live = live_of(request)
    ids = live.served.seen.user_ids.ids

    def find() -> list[str]:
        texts = ids.cast(pl.String)
        known = texts.filter(texts.str.starts_with(query)).head(k).to_list()
        newcomers = live.store.search_users(query, k)
        return list(dict.fromkeys([*known, *newcomers]))[:k]

    return answer({"users": await live.ask(find)})

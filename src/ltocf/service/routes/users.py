"""A user's history, similar users, and forgetting a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl
from fastapi import APIRouter, Request, Response

from ltocf.data.interactions import shorten_id
from ltocf.scorers.scorer import NOBODY
from ltocf.service.problems import Unknown
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
from ltocf.service.wire.replies import FoundUsers, HistoryOut, SimilarUsers

router = APIRouter()


@router.get("/users/{user:id}/history", response_model=HistoryOut, responses=NOT_FOUND)
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


@router.get("/users/{user:id}/similar", response_model=SimilarUsers, responses=NOT_FOUND)
async def similar_users(request: Request, user: UserPath, k: K = 10) -> Response:
    """The users most similar to one who is in the training data."""
    live = live_of(request)
    served = live.served
    check_k(k, served.seen.n_users)
    person = await live.ask(lambda: known_person(live, served, user))
    if person.row == NOBODY:
        raise Unknown(
            f"user {shorten_id(user)} is not in the training data, so no similar users are known"
        )

    def find() -> list[dict[str, Any]]:
        gone = live.store.forgotten(served.trained)
        most = min(k + len(gone), served.seen.n_users)
        table = served.recommender.similar_users(user, most)
        found = table.select(user=pl.col("similar").cast(pl.String), score="score").to_dicts()
        hidden = set(live.store.forgotten_among((one["user"] for one in found), gone))
        shown = [one for one in found if one["user"] not in hidden]
        return [{"rank": rank, **one} for rank, one in enumerate(shown[:k], start=1)]

    users = await live.ask(find)
    return answer({"model": served.version, "user": user, "users": users})


@router.delete("/users/{user:id}", status_code=204, responses=NOT_FOUND)
async def forget(request: Request, user: UserPath) -> Response:
    """Forget a person: their events are removed, and their pairs in the data set no longer count;
    the next update removes these from the data set too."""
    live = live_of(request)
    served = live.served

    def remove(wanted: Callable[[], bool]) -> None:
        stored = live.store.has(user) or live.store.shown_in_vain([user])
        if not stored:  # if there are events, the model in use need not know the person
            known_person(live, served, user)
        live.store.forget(user, wanted)

    await live.write(remove)
    request.app.state.feed.forget(user)
    if live.experiment is not None:
        live.experiment.forget(user)
    return Response(status_code=204)


@router.get("/users", response_model=FoundUsers)
async def find_users(
    request: Request,
    query: Search = "",
    k: K = 10,
) -> Response:
    """Users whose id begins with a text."""
    live = live_of(request)
    served = live.served

    def find() -> list[str]:
        gone = live.store.forgotten(served.trained)
        texts = served.seen.user_ids.ids.cast(pl.String)
        known = texts.filter(texts.str.starts_with(query)).head(k + len(gone)).to_list()
        hidden = set(live.store.forgotten_among(known, gone))
        newcomers = live.store.search_users(query, k)
        shown = [user for user in known if user not in hidden]
        return list(dict.fromkeys([*shown, *newcomers]))[:k]

    return answer({"users": await live.ask(find)})

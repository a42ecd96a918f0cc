"""Lists and their reasons."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.routing import APIRoute

from ltocf.data.interactions import Id
from ltocf.errors import DataError
from ltocf.recommend.explain import reasons_of
from ltocf.recommend.lists import ListOptions, blocked_items
from ltocf.recommend.people import Person
from ltocf.scorers.scorer import NOBODY
from ltocf.service.engine import Engine
from ltocf.service.lists import (
    FEW_LISTS,
    Answer,
    ListRequest,
    is_short,
    list_slices,
    refuse_too_much,
    shown_reasons,
    text_slices,
    to_json,
)
from ltocf.service.problems import Conflict, Unknown
from ltocf.service.routes.common import (
    CONFLICT,
    NOT_FOUND,
    K,
    Ruled,
    UserPath,
    answer,
    check_k,
    known_person,
    live_of,
    rules_of,
    while_connected,
)
from ltocf.service.served_model import ServedModel
from ltocf.service.wire.replies import ExplanationOut, ListOut, ListsOut
from ltocf.service.wire.requests import ListsIn, ListsOfUsers, RuleTexts, Text
from ltocf.service.work.slices import Slices

router = APIRouter()
# What most clients ask for: nothing but a length, of a user whose id needs no second look.
PLAIN_QUERY, PLAIN_ID = re.compile(rb"(?:k=([1-9][0-9]{0,2}))?"), re.compile(r"[A-Za-z0-9_-]{1,64}")
NO_RULES, USUAL_K = RuleTexts(), 10
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
# k, keep_seen, candidates, exclude, reasons, rules
Options = tuple[int, bool, Sequence[Id] | None, Sequence[Id], bool, RuleTexts]
SomeItems = Annotated[list[Text], Query(max_length=100)]


class PlainRoute(APIRoute):
    """A route of lists that reads a plain request itself: FastAPI goes through every parameter that
    there might be, which takes longer than to make the list. It reads all other requests."""

    def get_route_handler(self) -> Handler:
        general = super().get_route_handler()

        async def handle(request: Request) -> Response:
            query = PLAIN_QUERY.fullmatch(request.scope["query_string"])
            user = request.path_params["user"]
            if query is None or PLAIN_ID.fullmatch(user) is None:
                return await general(request)
            return await recommend(request, user, NO_RULES, int(query[1] or USUAL_K))

        return handle


async def recommend(
    request: Request,
    user: UserPath,
    rules: Ruled,
    k: K = USUAL_K,
    keep_seen: Annotated[bool, Query(description="Also what they already have.")] = False,
    reasons: Annotated[bool, Query(description="Add the exact reasons to each item.")] = False,
    exclude: SomeItems = [],  # noqa: B006 - FastAPI copies it
    candidates: Annotated[list[Text] | None, Query(max_length=100)] = None,
    without: Annotated[
        list[Text],
        Query(max_length=100, description="Items of their history, as if never touched."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """The best items of a user, who may have come a moment ago. Before their first event they get
    what is popular now."""
    live = live_of(request)
    served, arm = live.served_for(user)
    started = time.perf_counter()
    options = _options(live, served, 1, k, keep_seen, candidates, exclude, reasons, rules)
    short = is_short([options])
    with live.short() if short else nullcontext():
        (person,), stale = await live.people(served, [user])
        if without:
            person = person._replace(without=served.item_rows(without))
        wanted = replace(options, person=person, user=user, stale=stale, arm=arm)
        if short:
            found = await live.short_lists(wanted)
        else:
            (found,) = await while_connected(request, live.reasons(list_slices([wanted])))
    if not without:  # a question about what might have been is no list that was shown
        _shown(request, [wanted], [found], time.perf_counter() - started)
    return answer({"model": served.version} | found)


router.add_api_route(
    "/users/{user:id}/recommendations",
    recommend,
    methods=["GET"],
    response_model=ListOut,
    responses=NOT_FOUND | CONFLICT,
    route_class_override=PlainRoute,
)


@router.post("/recommendations", response_model=ListsOut, responses=NOT_FOUND | CONFLICT)
async def recommend_many(request: Request, body: Annotated[ListsIn, Body()]) -> Response:
    """Lists of many users, or of somebody new by the items that they have."""
    live = live_of(request)
    served = live.served
    started = time.perf_counter()
    options = body.k, body.keep_seen, body.candidates, body.exclude, body.reasons, body.rules
    if isinstance(body, ListsOfUsers):
        wanted = await _of_users(live, [str(user) for user in body.users], options)
    else:
        person = Person.of_history(served.item_rows(body.history))
        wanted = [replace(_options(live, served, 1, *options), person=person)]
    if is_short(wanted):
        with live.short():
            lists = await asyncio.gather(*map(live.short_lists, wanted))
        text = b",".join(map(to_json, lists))
    else:
        queue = live.reasons if len(wanted) == 1 else live.large
        lists, text = await while_connected(request, queue(text_slices(wanted)))
    _shown(request, wanted, lists, time.perf_counter() - started)
    whole = b'{"model":%s,"lists":[%s]}' % (to_json(served.version), text)
    return Response(whole, media_type="application/json")


async def _of_users(live: Engine, users: Sequence[str], options: Options) -> list[ListRequest]:
    """A request for each, by the model that answers them."""
    arms = [live.served_for(user) for user in users]
    made: dict[ServedModel, ListRequest] = {}
    people: dict[ServedModel, Iterator[Person]] = {}
    for model in dict.fromkeys(model for model, _ in arms):
        theirs = [user for user, (one, _) in zip(users, arms, strict=True) if one is model]
        found, stale = await live.people(model, theirs)
        made[model] = replace(_options(live, model, len(users), *options), stale=stale)
        people[model] = iter(found)
    return [
        replace(made[model], person=next(people[model]), user=user, arm=arm)
        for user, (model, arm) in zip(users, arms, strict=True)
    ]


def _shown(
    request: Request, wanted: Sequence[ListRequest], lists: Sequence[Answer], seconds: float
) -> None:
    """Report lists that were shown: a few to the feed, all to the experiment, if there is one."""
    for one, found in zip(wanted[:FEW_LISTS], lists, strict=False):
        request.app.state.feed.add(one.served.version, found, seconds, one.arm)
    experiment = live_of(request).experiment
    if experiment is not None:
        for one, found in zip(wanted, lists, strict=True):
            if one.user is not None:
                experiment.expose(one.user, one.arm, [entry["item"] for entry in found["items"]])


def _options(
    live: Engine,
    served: ServedModel,
    lists: int,
    k: int,
    keep_seen: bool,
    candidates: Sequence[Id] | None,
    exclude: Sequence[Id],
    with_reasons: bool,
    rules: RuleTexts,
) -> ListRequest:
    """The options of a request, to be completed with the person it is for."""
    check_k(k, len(served.item_ids))
    on = rules_of(served, rules)
    refuse_too_much(lists, k, with_reasons, on.reorder)
    try:
        blocked = blocked_items(served.seen.item_ids, candidates, exclude)
    except DataError as unknown:
        raise Unknown(str(unknown)) from None
    popularity = live.popularity.of(served)
    options = ListOptions(k, keep_seen, blocked, on, live.fade_after, popularity)
    return ListRequest(served, Person(NOBODY), options, reasons=with_reasons)


@router.get(
    "/explanations",
    response_model=ExplanationOut,
    responses=NOT_FOUND | CONFLICT,
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
    served = live.served if user is None else live.served_for(user)[0]
    if user is not None and history is not None:
        raise Conflict("give either user or history")
    row = served.item_row(item)

    if user is not None:
        person = await live.ask(lambda: known_person(live, served, user))
    else:
        person = Person.of_history(served.item_rows(history or []))

    def find() -> Slices[Answer]:
        (why,) = reasons_of(served.fitted, person, np.array([row], np.int32))
        yield
        return shown_reasons(served, why, most=None)

    found = await live.reasons(find())
    about = {"model": served.version, "item": served.item(row)}
    return answer(about | ({} if user is None else {"user": user}) | found)

"""Lists and their reasons."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Query, Request, Response

from ltocf.data.interactions import Id
from ltocf.errors import DataError
from ltocf.recommend.explain import reasons_of
from ltocf.recommend.lists import ListOptions, blocked_items
from ltocf.recommend.people import Person
from ltocf.scorers.scorer import NOBODY
from ltocf.service.engine import Engine
from ltocf.service.json_text import to_json
from ltocf.service.lists import (
    FEW_LISTS,
    ListReply,
    ListRequest,
    is_short,
    list_slices,
    reason_slices,
    reasons_text,
    refuse_too_much,
    text_slices,
)
from ltocf.service.observing.feed import NAMED, ShownList
from ltocf.service.problems import Conflict, Unknown
from ltocf.service.routes.common import (
    CONFLICT,
    NOT_FOUND,
    K,
    Ruled,
    UserPath,
    check_k,
    known_person,
    live_of,
    of_json,
    of_parts,
    rules_of,
    while_connected,
)
from ltocf.service.served_model import ServedModel
from ltocf.service.wire.replies import ExplanationOut, ListOut, ListsOut
from ltocf.service.wire.requests import ListsIn, ListsOfUsers, RuleTexts, Text
from ltocf.service.work.slices import Slices

router = APIRouter()
LIST_PATH, USUAL_K = "/users/{user:id}/recommendations", 10
# k, keep_seen, candidates, exclude, reasons, rules
Options = tuple[int, bool, Sequence[Id] | None, Sequence[Id], bool, RuleTexts]
SomeItems = Annotated[list[Text], Query(max_length=100)]


@router.get(LIST_PATH, response_model=ListOut, responses=NOT_FOUND | CONFLICT)
async def recommend(
    request: Request,
    user: UserPath,
    rules: Ruled,
    k: K = USUAL_K,
    keep_seen: Annotated[
        bool, Query(description="Also list items that they already have.")
    ] = False,
    reasons: Annotated[bool, Query(description="Add the exact reasons to each item.")] = False,
    exclude: SomeItems = [],  # noqa: B006 - FastAPI copies it
    candidates: Annotated[list[Text] | None, Query(max_length=100)] = None,
    without: Annotated[
        list[Text],
        Query(
            max_length=100,
            description="Items of their history to ignore, as if they had never touched them.",
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """The best items for a user, who may be new. Before their first event they get what is popular
    now."""
    started = time.perf_counter()
    options = k, keep_seen, candidates, exclude, reasons, rules
    reply = await list_for(request, user, options, without)
    if not without:  # a list "as if" was not shown to the person
        report(request, [reply], time.perf_counter() - started)
    return of_json(reply.text(with_model=True))


async def list_for(
    request: Request, user: str, asked: Options, without: Sequence[Id] = ()
) -> ListReply:
    """The list of one user."""
    live = live_of(request)
    served, arm = live.served_for(user)
    options = _options(live, served, 1, *asked)

    def request_of(person: Person, stale: bool) -> ListRequest:
        if without:
            person = person._replace(without=served.item_rows(without))
        # `replace` takes several times as long.
        return ListRequest(served, person, options.options, user, options.reasons, arm, stale)

    if is_short([options]):
        with live.short():
            reply = await live.short_list(served, user, request_of)
        await _explain(request, [reply])
    else:
        (person,), stale = await live.people(served, [user])
        slices = list_slices([request_of(person, stale)])
        (reply,) = await while_connected(request, live.reasons(slices))
    return reply


@router.post("/recommendations", response_model=ListsOut, responses=NOT_FOUND | CONFLICT)
async def recommend_many(request: Request, body: Annotated[ListsIn, Body()]) -> Response:
    """Lists for many users, or for a new person by the items that they have."""
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
        await _explain(request, lists)
        parts = [b",".join(reply.text(with_model=False) for reply in lists)]
    else:
        queue = live.reasons if len(wanted) == 1 else live.large
        lists, parts = await while_connected(request, queue(text_slices(wanted)))
    report(request, lists, time.perf_counter() - started)
    head = b'{"model":%s,"lists":[' % to_json(served.version).encode()
    return of_parts([head, *parts, b"]}"])


async def _explain(request: Request, lists: Sequence[ListReply]) -> None:
    """Add the reasons that took too long to be found together with the lists."""
    for reply in lists:
        if reply.unexplained:
            await while_connected(request, live_of(request).reasons(reason_slices(reply)))


async def _of_users(live: Engine, users: Sequence[str], options: Options) -> list[ListRequest]:
    """A ListRequest for each user, with the model that serves them."""
    arms = [live.served_for(user) for user in users]
    made: dict[ServedModel, ListRequest] = {}
    people: dict[ServedModel, Iterator[Person]] = {}
    for model in dict.fromkeys(model for model, _ in arms):
        theirs = [user for user, (one, _) in zip(users, arms, strict=True) if one is model]
        found, stale = await live.people(model, theirs)
        made[model] = replace(_options(live, model, len(users), *options), stale=stale)
        people[model] = iter(found)
    requests = []
    for user, (model, arm) in zip(users, arms, strict=True):
        one, person = made[model], next(people[model])
        # `replace` takes several times as long, and all requests wait for the event loop.
        given = one.served, person, one.options, user, one.reasons, arm, one.stale
        requests.append(ListRequest(*given))
    return requests


def report(request: Request, lists: Sequence[ListReply], seconds: float) -> None:
    """Report lists that were shown: a few to the feed, all to the experiment, if there is one."""
    for reply in lists[:FEW_LISTS]:
        request.app.state.feed.add(_line(reply, seconds))
    experiment = live_of(request).experiment
    if experiment is not None:
        for reply in lists:
            wanted = reply.wanted
            if wanted.user is not None:
                ids = [wanted.served.item_ids[row] for row in reply.found.items.tolist()]
                experiment.expose(wanted.user, wanted.arm, list(map(str, ids)))


def _line(reply: ListReply, seconds: float) -> ShownList:
    """A list in the form that the feed has."""
    wanted, served = reply.wanted, reply.wanted.served
    rows = reply.found.items[:NAMED].tolist()
    items = [{"item": str(served.item_ids[row]), "name": served.names[row]} for row in rows]
    of = wanted.user, served.version, wanted.arm, reply.found.source
    return ShownList(time.time(), *of, round(1000 * seconds, 2), items)


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
        list[Text] | None,
        Query(max_length=100, description="The items of a new person, the latest last."),
    ] = None,
) -> Response:
    """The exact terms whose sum is a person's score of an item."""
    live = live_of(request)
    served = live.served if user is None else live.served_for(user)[0]
    if user is not None and history is not None:
        raise Conflict("give either user or history")
    row = served.item_row(item)

    if user is not None:
        person = await live.ask(lambda: known_person(live, served, user))
    else:
        person = Person.of_history(served.item_rows(history or []))

    def find() -> Slices[str]:
        (why,) = reasons_of(served.fitted, person, np.array([row], np.int32))
        yield
        return reasons_text(served, why, most=None)

    found = await live.reasons(find())
    about = {"model": served.version, "item": served.item(row)}
    about |= {} if user is None else {"user": user}
    return of_json(f"{{{to_json(about)[1:-1]},{found}}}".encode())

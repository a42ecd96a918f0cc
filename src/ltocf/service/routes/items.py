"""Search for items, and similar items."""

from __future__ import annotations

import re

import numpy as np
from fastapi import APIRouter, Request, Response

from ltocf.recommend.lists import ListOptions
from ltocf.recommend.lists import similar_items as make_similar
from ltocf.recommend.rules import Rules
from ltocf.service.json_text import to_json
from ltocf.service.lists import refuse_too_much
from ltocf.service.routes.common import (
    CONFLICT,
    NOT_FOUND,
    ItemPath,
    K,
    Ruled,
    Search,
    Where,
    answer,
    check_k,
    live_of,
    of_json,
    rules_of,
)
from ltocf.service.served_model import ServedModel
from ltocf.service.wire.replies import FoundItems, SimilarItems
from ltocf.service.wire.requests import RuleTexts

router = APIRouter()


@router.get("/items/{item:id}/similar", response_model=SimilarItems, responses=NOT_FOUND | CONFLICT)
async def similar_items(request: Request, item: ItemPath, rules: Ruled, k: K = 10) -> Response:
    """The items most like one, as the rules allow."""
    live = live_of(request)
    served = live.served
    row = served.item_row(item)
    check_k(k, len(served.item_ids))
    options = ListOptions(k, rules=rules_of(served, rules))
    refuse_too_much(1, k, False, options.rules.reorder)
    rows = np.array([row], np.int32)
    (found,) = await live.ask(lambda: make_similar(served.fitted, rows, options))
    about = to_json({"model": served.version, "item": served.item(row)})[:-1]
    return of_json(f'{about},"items":{served.entries(found, options.rules)}}}'.encode())


@router.get("/items", response_model=FoundItems, responses=NOT_FOUND)
async def find_items(
    request: Request,
    query: Search = "",
    k: K = 10,
    where: Where = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Items whose name or id contains every word; those that begin with the query come first, then
    popular ones."""
    live = live_of(request)
    served = live.served
    allowed = rules_of(served, RuleTexts(where))
    rows = await live.ask(lambda: search(served, query, k, allowed))
    return answer({"model": served.version, "items": [served.item(row) for row in rows]})


def search(served: ServedModel, query: str, k: int, rules: Rules = Rules()) -> list[int]:  # noqa: B008 - immutable
    """The items that contain every word of the query, in any order. First come those that begin
    with the whole query, then those in which each word of the query begins a word, then popular
    ones."""
    words = query.lower().split()
    texts = served.searched
    found = np.arange(len(texts))
    if rules.where:
        found = np.flatnonzero(~served.blocked_by(rules))
    for word in words:
        found = found[texts.gather(found).str.contains(word, literal=True).to_numpy()]
    some = texts.gather(found)
    starts = some.str.starts_with(" ".join(words)).to_numpy()
    begun = np.zeros(len(found), dtype=np.int64)
    for word in words:
        begun += some.str.contains(rf"(^|\W){re.escape(word)}").to_numpy()
    order = np.lexsort((found, -served.seen.item_degrees[found], -begun, ~starts))
    rows: list[int] = found[order[:k]].tolist()
    return rows

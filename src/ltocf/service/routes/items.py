"""Items by name, and what is like them."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Request, Response

from ltocf.service.replies import FoundItems, SimilarItems
from ltocf.service.routes.common import NOT_FOUND, ItemPath, K, Search, answer, check_k, live_of
from ltocf.service.served import Served

router = APIRouter()


@router.get("/items/{item:path}/similar", response_model=SimilarItems, responses=NOT_FOUND)
async def similar_items(request: Request, item: ItemPath, k: K = 10) -> Response:
    """The items most like one."""
    live = live_of(request)
    served = live.served
    row = served.item_row(item)
    check_k(k, len(served.item_ids))
    table = await live.ask(lambda: served.recommender.similar_items(item, k))
    places = table.select("rank", "similar", "score").rows()
    items = [
        {"rank": rank, **served.item(served.item_row(similar)), "score": score}
        for rank, similar, score in places
    ]
    return answer({"model": served.version, "item": served.item(row), "items": items})


@router.get("/items", response_model=FoundItems)
async def find_items(
    request: Request,
    query: Search = "",
    k: K = 10,
) -> Response:
    """Items whose name or id holds a text; those that begin with it first, then the popular."""
    live = live_of(request)
    served = live.served
    rows = await live.ask(lambda: search(served, query, k))
    return answer({"model": served.version, "items": [served.item(row) for row in rows]})


def search(served: Served, query: str, k: int) -> list[int]:
    text = query.strip().lower()
    found = served.searched.str.contains(text, literal=True).arg_true().to_numpy()
    starts = served.searched.gather(found).str.starts_with(text).to_numpy()
    order = np.lexsort((found, -served.seen.item_degrees[found], ~starts))
    rows: list[int] = found[order[:k]].tolist()
    return rows

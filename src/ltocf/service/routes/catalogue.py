"""The catalogue while the service runs: items come, change and go."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Request, Response
from starlette.convertors import Convertor, register_url_convertor

from ltocf.data.catalogue import ItemChange
from ltocf.service.routes.common import CONFLICT, NOT_FOUND, ItemPath, answer, live_of
from ltocf.service.wire.replies import ItemReceipt, OneItem
from ltocf.service.wire.requests import Attributes, ItemsIn, NewText


class ShelfText(Convertor[str]):
    """An id as the rest of a path, unless that path is another route."""

    regex = "(?s:(?!.*/similar$).*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("shelf", ShelfText())
router = APIRouter()
NewItemPath = Annotated[NewText, Path(examples=["tea"], description="An item's id.")]
Given = Annotated[Attributes, Body()]


@router.get("/items/{item:shelf}", response_model=OneItem, responses=NOT_FOUND)
async def get_item(request: Request, item: ItemPath) -> Response:
    """An item as it is now."""
    served = live_of(request).served
    return answer({"model": served.version, "item": served.item(served.item_row(item))})


@router.put("/items/{item:shelf}", response_model=ItemReceipt, responses=CONFLICT)
async def put_item(request: Request, item: NewItemPath, attributes: Given) -> Response:
    """Set all attributes of an item, new or not; those that are not given are removed. The very
    next list uses them."""
    return await _change(request, [ItemChange(item, attributes, whole=True, hidden=False)])


@router.patch("/items/{item:shelf}", response_model=ItemReceipt, responses=CONFLICT)
async def patch_item(request: Request, item: NewItemPath, attributes: Given) -> Response:
    """Change some attributes of an item, such as {"available": false}. The others stay, and a
    hidden item stays hidden."""
    return await _change(request, [ItemChange(item, attributes)])


@router.delete("/items/{item:shelf}", response_model=ItemReceipt, responses=NOT_FOUND | CONFLICT)
async def hide_item(request: Request, item: ItemPath) -> Response:
    """Hide an item: no list has it from now on, until it is shown again by PUT or PATCH."""
    live_of(request).served.item_row(item)
    return await _change(request, [ItemChange(item, hidden=True)])


@router.put("/items", response_model=ItemReceipt, responses=CONFLICT)
async def put_items(request: Request, body: Annotated[ItemsIn, Body()]) -> Response:
    """Set all attributes of many items at once; either all items are changed or none."""
    return await _change(request, _changes(body, whole=True))


@router.patch("/items", response_model=ItemReceipt, responses=CONFLICT)
async def patch_items(request: Request, body: Annotated[ItemsIn, Body()]) -> Response:
    """Change some attributes of many items at once; either all items are changed or none. "hidden"
    hides an item or shows it again."""
    return await _change(request, _changes(body, whole=False))


def _changes(body: ItemsIn, *, whole: bool) -> list[ItemChange]:
    return [
        ItemChange(
            str(one.item),
            one.attributes,
            whole=whole,
            hidden=bool(one.hidden) if whole else one.hidden,
        )
        for one in body.items
    ]


async def _change(request: Request, changes: list[ItemChange]) -> Response:
    await live_of(request).change_items(changes)
    return answer({"changed": len(changes)})

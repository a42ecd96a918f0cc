"""POST /impressions"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from ltocf.service.routes.common import answer, live_of
from ltocf.service.store.impressions import Impression
from ltocf.service.wire.replies import ImpressionReceipt
from ltocf.service.wire.requests import ImpressionsIn

router = APIRouter()


@router.post("/impressions", status_code=201, response_model=ImpressionReceipt)
async def add_impressions(request: Request, body: Annotated[ImpressionsIn, Body()]) -> Response:
    """Record what a person was shown. Items that they are shown often and never take fade from
    their list. /operations has the share of shown items that were taken."""
    live, user = live_of(request), str(body.user)
    model = live.served_for(user)[0].version
    shown = [Impression(user, str(item)) for item in body.items]
    await live.count_shown(model, shown)
    return answer({"counted": len(shown)}, 201)

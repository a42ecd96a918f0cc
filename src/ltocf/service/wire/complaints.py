"""What is wrong with a request, as one line for whoever wrote the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ltocf.service.wire.requests import ANOTHER_KIND

Complaint = Mapping[str, Any]  # as pydantic makes them

# Of a union, which is nothing that the client wrote.
TAGS = ("one", "many", "users", "history")
BRANCHES = ("constrained-", "function-", "datetime", "list[", "str", "int", "float", "bool")
# Complaints that the value is of another kind, and the kind that would be right.
KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a JSON object",
    "model_type": "a JSON object",
    "model_attributes_type": "a JSON object",
}


def complaint_of(complaints: Sequence[Complaint], *, sent_as_json: bool) -> str:
    """'place: what is wrong there', of the first place. What was sent may be too odd to be sent
    back."""
    first = complaints[0]
    where = _place(first)
    if first["type"] == "json_invalid":
        return "body: is not valid JSON"
    if where == "body" and not sent_as_json and first["type"] != "missing":
        return "body: needs the header 'content-type: application/json'"
    # Of a union every branch complains. One that takes this kind of value knows what is wrong.
    here = [one for one in complaints if _place(one) == where]
    inside = [one for one in here if _kind(one) is None]
    if not inside:
        return f"{where}: should be {' or '.join(dict.fromkeys(map(_kind, here)))}"  # type: ignore[arg-type]
    chosen = next((one for one in inside if one["type"] == "value_error"), inside[0])
    return f"{where}: {chosen['msg'].removeprefix('Value error, ')}"


def _kind(complaint: Complaint) -> str | None:
    if complaint["type"] == ANOTHER_KIND:
        return str(complaint["ctx"]["kind"])
    return KINDS.get(complaint["type"])


def _place(complaint: Complaint) -> str:
    """'events.0.item', without where it was sent, and without the branches of unions."""
    place = [str(part) for part in complaint["loc"][1:]]
    if place and place[0] in TAGS:
        place = place[1:]
    # The last part names the branch of a union, if it is one: nobody calls an attribute so.
    if len(place) > 1 and place[-1].startswith(BRANCHES):
        place = place[:-1]
    return ".".join(part for part in place if "(" not in part) or "body"

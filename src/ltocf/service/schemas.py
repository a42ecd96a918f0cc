"""What comes over the wire; what a request does not know, it refuses."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

MOST_EVENTS, MOST_USERS, MOST_ITEMS, MOST_K = 1000, 500, 10_000, 1000
LONGEST_ID = 256

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, pattern=r"^[^\x00]+$")]


def _whole(value: object) -> object:
    """To JSON 3.0 is a whole number, and true is none."""
    if isinstance(value, bool | str):
        raise ValueError("should be a whole number")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("should be a date and time")
    return value


# What JSON carries safely.
Integer = Annotated[int, Field(gt=-(2**53), lt=2**53), BeforeValidator(_whole)]
Length = Annotated[int, Field(ge=1, le=MOST_K), BeforeValidator(_whole)]
Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
Id = Annotated[Text | Integer, Field(description="As in the data: a text or a whole number.")]
Seconds = Annotated[float, Field(ge=0, lt=2**33, allow_inf_nan=False, strict=True)]
Items = Annotated[list[Id], Field(max_length=MOST_ITEMS)]


class Closed(BaseModel):
    """A request: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EventIn(Closed):
    """Somebody touched an item."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"user": "ann", "item": "tea", "time": "2026-11-16T12:00:00Z"}]
        }
    )
    user: Id
    item: Id
    time: Moment | Seconds | None = Field(
        None, description="A date and time with its zone, or seconds since 1970; by default now."
    )
    kind: Annotated[str, Field(max_length=64, pattern=r"^[^\x00]*$")] | None = Field(
        None, description="Kept with the event, such as 'click' or 'purchase'."
    )
    key: Text | None = Field(
        None, description="Names this event: delivered again with the same key, it counts once."
    )


class EventsIn(Closed):
    events: list[EventIn] = Field(min_length=1, max_length=MOST_EVENTS)


def _how_many(body: object) -> str:
    return "many" if isinstance(body, dict) and "events" in body else "one"


OneOrMany = Annotated[
    Annotated[EventIn, Tag("one")] | Annotated[EventsIn, Tag("many")], Discriminator(_how_many)
]


class Choice(Closed):
    """What a list is made of."""

    k: Length = 10
    exclude: Items = Field([], description="Items that are never chosen.")
    candidates: Items | None = Field(
        None, min_length=1, description="The only items to choose from."
    )
    keep_seen: bool = Field(False, strict=True, description="Also what they already have.")
    reasons: bool = Field(False, strict=True, description="Add the exact reasons to each item.")


class ListsOfUsers(Choice):
    """Lists for users by id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"users": ["ann", "bob"], "k": 2}]})
    users: list[Id] = Field(min_length=1, max_length=MOST_USERS)


class ListOfHistory(Choice):
    """A list for somebody new, by what they have."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"history": ["tea", "jazz"], "k": 2, "reasons": True}]}
    )
    history: Items = Field(description="The latest item comes last.")


def _whose(body: object) -> str:
    return "users" if isinstance(body, dict) and "users" in body else "history"


ListsIn = Annotated[
    Annotated[ListsOfUsers, Tag("users")] | Annotated[ListOfHistory, Tag("history")],
    Discriminator(_whose),
]

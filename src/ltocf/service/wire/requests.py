"""Bodies of requests; unknown fields are refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)
from pydantic_core import PydanticCustomError

MOST_EVENTS, MOST_USERS, MOST_ITEMS, MOST_K = 1000, 500, 10_000, 1000
LONGEST_ID = 256
MOST_SECONDS = 2**33
ANOTHER_KIND = "another_kind"  # the type of a complaint, of which a union may have several


def _readable(text: str) -> str:
    if "\0" in text:
        raise ValueError("may not contain the character NUL")
    return text


def _addressable(text: str) -> str:
    """An id that fits into a URL's path and into a line of a log."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("an id may not contain a newline or another control character")
    if text in (".", ".."):
        raise ValueError("an id may not be '.' or '..', which have a special meaning in URLs")
    return text


def _text(pattern: str, least: int = 1, most: int = LONGEST_ID) -> Any:
    """A text with a pattern that is only in the schema: a message that quotes it would not help."""
    return Field(min_length=least, max_length=most, json_schema_extra={"pattern": pattern})


ANYTHING = r"^[^\x00]*$"
Text = Annotated[str, _text(ANYTHING), AfterValidator(_readable)]
ShortText = Annotated[str, _text(ANYTHING, 0, 64), AfterValidator(_readable)]
SearchText = Annotated[str, _text(ANYTHING, 0), AfterValidator(_readable)]
NewText = Annotated[
    str,
    _text(r"^(?!\.{1,2}$)[^\x00-\x1f\x7f-\x9f]+$"),
    AfterValidator(_addressable),
]


def _whole(value: object) -> object:
    """A whole number: in JSON 3.0 is one, and true is not."""
    if isinstance(value, bool | str):
        raise _another_kind("a whole number")
    if isinstance(value, int) and not -(2**53) < value < 2**53:
        raise ValueError("has more digits than JSON numbers carry safely; send the id as a string")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(value: object) -> object:
    if not isinstance(value, str):
        raise _another_kind("a date and time")
    return value


def _in_seconds(value: object) -> object:
    """JavaScript's clock counts milliseconds."""
    if isinstance(value, int | float) and value >= MOST_SECONDS:
        raise ValueError("is later than the year 2242; send seconds since 1970, not milliseconds")
    return value


def _another_kind(kind: str) -> PydanticCustomError:
    return PydanticCustomError(ANOTHER_KIND, "should be {kind}", {"kind": kind})


# Whole numbers up to these are exact in JSON.
Integer = Annotated[int, Field(gt=-(2**53), lt=2**53), BeforeValidator(_whole)]
Length = Annotated[int, Field(ge=1, le=MOST_K), BeforeValidator(_whole)]
Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
Id = Annotated[Text | Integer, Field(description="As in the data: a text or a whole number.")]
NewId = Annotated[
    NewText | Integer,
    Field(description="A text without control characters, not '.' or '..', or a whole number."),
]
Seconds = Annotated[
    float,
    Field(ge=0, lt=MOST_SECONDS, allow_inf_nan=False, strict=True),
    BeforeValidator(_in_seconds),
]
Items = Annotated[list[Id], Field(max_length=MOST_ITEMS)]


class StrictRequest(BaseModel):
    """The base of requests; an unknown field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EventIn(StrictRequest):
    """A person touched an item."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"user": "ann", "item": "tea", "time": "2026-11-16T12:00:00Z"}]
        }
    )
    user: NewId
    item: NewId
    time: Moment | Seconds | None = Field(
        None,
        description="A date and time with its zone, or seconds since 1970; by default now. "
        "Not before 1970 nor more than a day from now.",
    )
    kind: ShortText | None = Field(
        None,
        description="Such as 'click' or 'purchase'. Its weight is that of the service (--weigh); "
        "without one, a 'return' takes a like back, and after a 'dislike' the item is never "
        "listed again.",
    )
    key: Text | None = Field(
        None, description="Names this event: delivered again with the same key, it counts once."
    )
    shown: list[NewId] | None = Field(
        None,
        max_length=MOST_K,
        description="The items that they were shown when they took this one, as impressions.",
    )


class ImpressionsIn(StrictRequest):
    """Items that a person was shown, taken or not."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user": "ann", "items": ["tea", "jazz"]}]}
    )
    user: NewId
    items: Annotated[list[NewId], Field(min_length=1, max_length=MOST_K)]


class EventsIn(StrictRequest):
    events: list[EventIn] = Field(min_length=1, max_length=MOST_EVENTS)


Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
LongText = Annotated[str, _text(ANYTHING, 0, 10_000), AfterValidator(_readable)]
Tags = Annotated[list[Text], Field(max_length=1000)]
Value = Annotated[
    Flag | Integer | Number | LongText | Tags | None,
    Field(description="A text, a number, true or false, a list of tags, or null to remove it."),
]
Attributes = Annotated[
    dict[str, Value],
    Field(
        max_length=200,
        description="Attributes by name. 'name', 'picture', 'available' and 'expires' have a "
        "meaning of their own; categories and lists of tags are what items share.",
        examples=[{"name": "Green Acorn Tea", "category": "tea", "tags": ["matcha"]}],
    ),
]


class ItemIn(StrictRequest):
    """A change of an item."""

    item: NewId
    attributes: Attributes = {}
    hidden: Flag | None = Field(
        None, description="true hides the item from all lists, false shows it again."
    )


class ItemsIn(StrictRequest):
    items: list[ItemIn] = Field(min_length=1, max_length=MOST_EVENTS)


def _how_many(body: object) -> str:
    return "many" if isinstance(body, dict) and "events" in body else "one"


OneOrMany = Annotated[
    Annotated[EventIn, Tag("one")] | Annotated[EventsIn, Tag("many")], Discriminator(_how_many)
]


AlikeBy = Literal["attributes", "vectors"]


class RuleTexts(NamedTuple):
    """The rules of a request, as they were written."""

    where: Sequence[str] = ()
    boost: Sequence[str] = ()
    at_most: Sequence[str] = ()
    pin: Sequence[str | int] = ()
    diversity: float = 0.0
    alike_by: AlikeBy = "attributes"


class ListOptions(StrictRequest):
    """The options of a list."""

    k: Length = 10
    exclude: Items = Field([], description="Items that must not be in the list.")
    candidates: Items | None = Field(
        None, min_length=1, description="The only items to choose from."
    )
    where: list[Text] = Field(
        [], max_length=20, description="Conditions that every item meets, such as category=tea."
    )
    boost: list[Text] = Field([], max_length=20, description="CONDITION:FACTOR, such as new:1.2.")
    at_most: list[Text] = Field(
        [], max_length=20, description="N:ATTRIBUTE: so many of a list may share a value."
    )
    pin: list[Id] = Field([], max_length=100, description="Items that come first.")
    diversity: float = Field(
        0.0,
        ge=0,
        le=1,
        strict=True,
        description="From 0 (by score alone) to 1 (as unlike as can be).",
    )
    alike_by: AlikeBy = Field("attributes", description="What makes two items alike.")
    keep_seen: bool = Field(
        False, strict=True, description="Also list items that they already have."
    )
    reasons: bool = Field(False, strict=True, description="Add the exact reasons to each item.")

    @property
    def rules(self) -> RuleTexts:
        return RuleTexts(
            self.where, self.boost, self.at_most, self.pin, self.diversity, self.alike_by
        )


class ListsOfUsers(ListOptions):
    """Lists for users by id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"users": ["ann", "bob"], "k": 2}]})
    users: list[Id] = Field(min_length=1, max_length=MOST_USERS)


class ListOfHistory(ListOptions):
    """A list for a new person, by the items that they have."""

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

"""What goes over the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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


class Committed(BaseModel):
    """These events are on disk, and the next list knows them."""

    accepted: int
    repeated: int = Field(description="Events whose key was there already.")


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


class Item(BaseModel):
    item: str | int
    name: str
    about: dict[str, Any] = Field(description="What else the data set has to display.")


class Reason(Item):
    contribution: float


class Reasons(BaseModel):
    """`own + others + the sum of the contributions` is the score, exactly."""

    score: float
    own: float = Field(description="From the user's own vector, or what everybody gets.")
    because: list[Reason]
    others: float = Field(description="From the rest of the history.")


class Listed(Item):
    rank: int
    score: float
    reasons: Reasons | None = None


class OneList(BaseModel):
    user: str | None = None
    source: Literal["model", "popularity"] = Field(
        description="'popularity' for those of whom nothing is known yet."
    )
    items: list[Listed]


class ListOut(OneList):
    model: str = Field(description="The version of the model that answered.")


class ListsOut(BaseModel):
    model: str
    lists: list[OneList]


class SimilarItem(Item):
    rank: int
    score: float


class SimilarItems(BaseModel):
    model: str
    item: Item
    items: list[SimilarItem]


class SimilarUser(BaseModel):
    rank: int
    user: str | int
    score: float


class SimilarUsers(BaseModel):
    model: str
    user: str
    users: list[SimilarUser]


class ExplanationOut(Reasons):
    model: str
    user: str | None = None
    item: Item


class FoundItems(BaseModel):
    model: str
    items: list[Item]


class FoundUsers(BaseModel):
    users: list[str]


class Touched(Item):
    time: str | None = Field(description="When, if the data set knows.")


class HistoryOut(BaseModel):
    user: str
    known: bool = Field(description="Whether they were there in training.")
    items: list[Touched] = Field(description="The latest first.")


class Status(BaseModel):
    status: str
    model: str | None = None


class ProblemOut(BaseModel):
    detail: str


class Epoch(BaseModel):
    epoch: int
    loss: float
    metrics: dict[str, float]


class Online(BaseModel):
    """How well a model's lists met the events of people with a history."""

    model: str
    hour: int = Field(description="Since 1970; of a sum, its first.")
    events: int
    hits: int = Field(description="Events whose item was among the first 20 just before.")
    reciprocal: float = Field(description="The sum of 1 / rank.")


class RequestsOut(BaseModel):
    answered: int
    failed: int = Field(description="With a status of 500 or more.")
    mean_milliseconds: float


class EventsOut(BaseModel):
    all: int
    since_training: int


class ModelOut(BaseModel):
    model: str
    name: str
    data: dict[str, str | int]
    explains: bool = Field(description="Whether lists can have reasons.")
    metrics: dict[str, float] = Field(description="On the test set.")
    epochs: list[Epoch]
    times: list[float] = Field(description="When the ODE's states are read.")
    response: dict[str, list[float]] | None = Field(
        description="What the model makes of each eigenvalue x of the graph."
    )
    events: EventsOut
    online: list[Online] = Field(description="By model.")
    hours: list[Online] = Field(description="By hour and model, the latest last.")
    requests: RequestsOut

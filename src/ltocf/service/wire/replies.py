"""What goes over the wire."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class EventReceipt(BaseModel):
    """These events are on disk, and the next list knows them."""

    accepted: int
    repeated: int = Field(description="Events whose key was there already.")


class ImpressionReceipt(BaseModel):
    """These are counted: what is shown often and never taken fades from a person's list."""

    counted: int


class ItemReceipt(BaseModel):
    """These items are on disk as they were sent, and the next list knows them."""

    changed: int


class Item(BaseModel):
    item: str = Field(description="An id; whole numbers too are texts here.")
    name: str
    about: dict[str, Any] = Field(description="What else the data set has to display.")


class Reason(Item):
    contribution: float


class Reasons(BaseModel):
    """`own + popularity + others + the sum of the contributions` is the score, exactly."""

    score: float
    own: float = Field(description="From the user's own vector.")
    popularity: float = Field(description="What the item has with everybody.")
    because: list[Reason]
    others: float = Field(description="From the rest of the history.")


class ListedItem(Item):
    rank: int
    score: float
    moved_by: str | None = Field(None, description="The boosts that raised or lowered it.")
    reasons: Reasons | None = None


class OneList(BaseModel):
    user: str | None = None
    arm: str | None = Field(None, description="Of the experiment, if there is one.")
    source: Literal["model", "popularity"] = Field(
        description="'popularity' for those of whom nothing is known yet."
    )
    items: list[ListedItem]
    stale: bool = Field(
        False,
        description="The store of events did not answer: the list does not know what happened "
        "since the model was trained.",
    )


class ListOut(OneList):
    model: str = Field(description="The version of the model that answered.")


class ListsOut(BaseModel):
    model: str
    lists: list[OneList]


class SimilarItem(Item):
    rank: int
    score: float
    moved_by: str | None = Field(None, description="The boosts that raised or lowered it.")


class SimilarItems(BaseModel):
    model: str
    item: Item
    items: list[SimilarItem]


class BoardOut(BaseModel):
    model: str
    board: Literal["popular", "trending", "new"]
    items: list[SimilarItem] = Field(
        description="The score is how many touched it, by how much its share has grown, or when "
        "it arrived, in seconds since 1970."
    )


class CategoryOut(BaseModel):
    name: str
    rule: str = Field(description="As for `where`.")
    items: int


class SimilarUser(BaseModel):
    rank: int
    user: str
    score: float


class SimilarUsers(BaseModel):
    model: str
    user: str
    users: list[SimilarUser]


class ExplanationOut(Reasons):
    model: str
    user: str | None = None
    item: Item


class OneItem(BaseModel):
    model: str
    item: Item


class FoundItems(BaseModel):
    model: str
    items: list[Item]


class FoundUsers(BaseModel):
    users: list[str]


class HistoryEntry(Item):
    time: str | None = Field(description="When, if the data set knows.")


class HistoryOut(BaseModel):
    user: str
    known: bool = Field(description="Whether they were there in training.")
    items: list[HistoryEntry] = Field(description="The latest first.")


class Status(BaseModel):
    status: str
    model: str | None = None


class Readiness(Status):
    reading: bool = Field(description="Whether lists know the latest events.")
    writing: bool = Field(description="Whether events are taken.")
    problem: str | None = Field(description="What is wrong, if anything is.")


class ProblemOut(BaseModel):
    detail: str


class Epoch(BaseModel):
    epoch: int
    loss: float
    metrics: dict[str, float]


class LiveQuality(BaseModel):
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
    categories: list[CategoryOut] = Field(description="To filter by.")
    boards: list[str]
    metrics: dict[str, float] = Field(description="On the test set.")
    epochs: list[Epoch]
    times: list[float] = Field(description="When the ODE's states are read.")
    response: dict[str, list[float]] | None = Field(
        description="What the model makes of each eigenvalue x of the graph."
    )
    events: EventsOut
    online: list[LiveQuality] = Field(description="By model.")
    hours: list[LiveQuality] = Field(description="By hour and model, the latest last.")
    requests: RequestsOut


class TakenBack(BaseModel):
    removed: int

"""Bodies of answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class EventReceipt(BaseModel):
    """These events are on disk, and the next list takes them into account."""

    accepted: int
    repeated: int = Field(
        description="Events that were not stored again, because their key was stored already."
    )


class ImpressionReceipt(BaseModel):
    """These are counted: items that are shown often and never taken fade from a person's list."""

    counted: int


class ItemReceipt(BaseModel):
    """These items are on disk as they were sent, and the next list uses them."""

    changed: int


class Item(BaseModel):
    item: str = Field(description="An id, always as a string, even if it is a whole number.")
    name: str
    about: dict[str, Any] = Field(description="Other columns of the data set to display.")


class Reason(Item):
    contribution: float


class Reasons(BaseModel):
    """`own + popularity + others + the sum of the contributions` is the score, exactly."""

    score: float
    own: float = Field(description="From the user's own vector.")
    popularity: float = Field(description="The item's popularity, the same for all people.")
    because: list[Reason]
    others: float = Field(description="From the rest of the history.")


class ListedItem(Item):
    rank: int
    score: float
    moved_by: str | None = Field(None, description="The boosts that raised or lowered it.")
    reasons: Reasons | None = None


class OneList(BaseModel):
    user: str | None = None
    arm: str | None = Field(None, description="The arm of the experiment, if there is one.")
    source: Literal["model", "popularity"] = Field(
        description="'popularity' for people without a history."
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
    time: str | None = Field(description="The time, if the data set has times.")


class HistoryOut(BaseModel):
    user: str
    known: bool = Field(description="Whether the user is in the training data.")
    items: list[HistoryEntry] = Field(description="The latest first.")


class Status(BaseModel):
    status: str
    model: str | None = None


class Readiness(Status):
    reading: bool = Field(description="Whether lists take the latest events into account.")
    writing: bool = Field(description="Whether events are taken.")
    problem: str | None = Field(description="What is wrong, if anything is.")


class ProblemOut(BaseModel):
    detail: str


class Epoch(BaseModel):
    epoch: int
    loss: float
    metrics: dict[str, float]


class LiveQuality(BaseModel):
    """How well a model's lists matched the events of people with a history."""

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
    times: list[float] = Field(description="The times at which the states of the ODE are read.")
    response: dict[str, list[float]] | None = Field(
        description="What the model makes of each eigenvalue x of the graph."
    )
    events: EventsOut
    online: list[LiveQuality] = Field(description="By model.")
    hours: list[LiveQuality] = Field(description="By hour and model, the latest last.")
    requests: RequestsOut


class TakenBack(BaseModel):
    removed: int

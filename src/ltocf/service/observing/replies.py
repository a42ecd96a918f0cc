"""Replies for the people who run the service."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from ltocf.service.wire.replies import Item


class RouteOut(BaseModel):
    route: str
    answered: int
    failed: int = Field(description="With a status of 500 or more.")
    p50_milliseconds: float | None
    p99_milliseconds: float | None


class UpdateOut(BaseModel):
    """What became of an update: it is used, kept as a candidate, or was refused as worse."""

    time: str
    outcome: Literal["used", "candidate", "refused"]
    version: str | None
    events: int = Field(description="That both models were checked on.")
    old_hit_rate: float | None
    new_hit_rate: float | None
    old_mrr: float | None
    new_mrr: float | None


class VersionOut(BaseModel):
    version: int
    role: Literal["current", "previous", "candidate"] | None
    made: str
    live_events: int
    live_hits: int


class VersionInUse(BaseModel):
    current: int
    previous: int | None
    candidate: int | None


class HourOut(BaseModel):
    hour: int = Field(description="Since 1970.")
    events: int


class ShownOut(BaseModel):
    model: str
    shown: int = Field(description="Items, each counted once for each person.")
    taken: int


class OperationsOut(BaseModel):
    model: str
    routes: list[RouteOut]
    lists: RouteOut = Field(description="The route of a person's list.")
    updates: list[UpdateOut] = Field(description="The latest first.")
    versions: list[VersionOut]
    events_by_hour: list[HourOut]
    events_last_hour: int
    shown: list[ShownOut] = Field(
        description="Of the items that people were shown in each model's lists, how many they took."
    )
    experiment: ExperimentOut | None


class Interval(BaseModel):
    """At every moment at once, with a probability of 95 per cent."""

    low: float
    high: float


class ArmOut(BaseModel):
    name: str
    version: str
    share: float
    shadow: bool
    people: int = Field(description="Who got a list.")
    hit_rate: float | None
    hit_interval: Interval | None
    hit_rate_people: int
    conversion: float | None
    conversion_interval: Interval | None
    conversion_people: int


class VerdictOut(BaseModel):
    """Decided if the evidence has reached what is needed; that holds however often one looks."""

    measure: Literal["hit_rate", "conversion"]
    arms: list[str]
    decided: bool
    evidence: float
    needed: float
    sentence: str


class ExperimentOut(BaseModel):
    name: str
    shadow: bool
    arms: list[ArmOut]
    verdicts: list[VerdictOut]


class FeedEvent(Item):
    number: int
    user: str
    kind: str | None
    time: str


class FeedItem(BaseModel):
    item: str | int
    name: str


class FeedList(BaseModel):
    time: str
    user: str | None
    model: str
    arm: str | None
    source: str
    milliseconds: float
    items: list[FeedItem] = Field(description="The first of the list.")


class FeedOut(BaseModel):
    events: list[FeedEvent]
    lists: list[FeedList]

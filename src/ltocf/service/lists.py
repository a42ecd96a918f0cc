"""Lists for those who wait: all in one product where they are few and short, else in slices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltocf.errors import LtocfError
from ltocf.recommend.explain import Reasons, reasons_of
from ltocf.recommend.lists import ItemList, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.service.problems import Conflict, Problem
from ltocf.service.served_model import ServedModel
from ltocf.service.work.slices import Slices

JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
REASONS = 3  # shown with each item of a list
SHORT_LIST, FEW_LISTS = 100, 4  # beyond which a request is a large one
MOST_ENTRIES, MOST_REASONS = 100_000, 5_000  # of all lists of one request
SLICE_LISTS, SLICE_ENTRIES, SLICE_REASONS = 8, 1000, 10  # a few milliseconds each


@dataclass(frozen=True, eq=False)
class ListRequest:
    """A list for somebody as they are now."""

    served: ServedModel
    person: Person
    options: ListOptions
    user: str | None = None  # their id, if they have one
    reasons: bool = False
    arm: str | None = None  # of an experiment
    stale: bool = False  # the store did not answer: they may have done more than is known


Answer = dict[str, Any]


def refuse_too_much(lists: int, k: int, with_reasons: bool, reordered: bool = False) -> None:
    """A Conflict if options that are fine by themselves ask together for more than one may."""
    if reordered and k > SHORT_LIST:
        raise Conflict(
            f"at_most, pin and diversity are for lists of up to {SHORT_LIST} items, not k={k}"
        )
    most = MOST_REASONS if with_reasons or reordered else MOST_ENTRIES
    if lists * k > most:
        what = "items with reasons" if with_reasons else "items"
        raise Conflict(
            f"{lists} lists of {k} are more than {most:,} {what} in one request; ask for fewer"
        )


def is_short(requests: Sequence[ListRequest]) -> bool:
    """Whether these are made in a moment: few, none of them long, with reasons or reordered."""
    return len(requests) <= FEW_LISTS and not any(
        one.options.k > SHORT_LIST or one.reasons or one.options.rules.reorder for one in requests
    )


def answer_lists(batch: Sequence[ListRequest]) -> list[Answer | Exception]:
    """A list for each, all of it by the model that was served when it was asked."""
    answers: dict[int, Answer | Exception] = {}
    for served in {id(wanted.served): wanted.served for wanted in batch}.values():
        places = [place for place, wanted in enumerate(batch) if wanted.served is served]
        found = _answers_by(served, [batch[place] for place in places])
        answers |= dict(zip(places, found, strict=True))
    return [answers[place] for place in range(len(batch))]


def list_slices(requests: Sequence[ListRequest]) -> Slices[list[Answer]]:
    """The same for many lists, long ones or ones with reasons: a few at a time."""
    answers: list[Answer] = []
    step = max(1, min(SLICE_LISTS, SLICE_ENTRIES // max(one.options.k for one in requests)))
    for start in range(0, len(requests), step):
        some = requests[start : start + step]
        for wanted, found in zip(some, answer_lists(some), strict=True):
            if isinstance(found, Exception):
                raise found
            answers.append(found)
            if wanted.reasons and found["source"] == "model":
                yield
                yield from _add_reasons(wanted, found)
        yield
    return answers


def text_slices(requests: Sequence[ListRequest]) -> Slices[tuple[list[Answer], bytes]]:
    """The answers, and their JSON: writing much of it takes long as well."""
    answers: list[Answer] = []
    texts = []
    step = max(1, min(SLICE_LISTS, SLICE_ENTRIES // max(one.options.k for one in requests)))
    for start in range(0, len(requests), step):
        some = yield from list_slices(requests[start : start + step])
        answers += some
        texts += [to_json(answer) for answer in some]
        yield
    return answers, b",".join(texts)


def to_json(value: Any) -> bytes:
    return JSON.encode(value).encode()


def _answers_by(served: ServedModel, batch: Sequence[ListRequest]) -> Sequence[Answer | Exception]:
    people, options = [one.person for one in batch], [one.options for one in batch]
    try:
        lists = make_lists(served.fitted, people, options)
    except LtocfError as refusal:  # of a model that knows no newcomers; the others can be served
        if len(batch) == 1:
            return [Problem(str(refusal))]
        return [answer for wanted in batch for answer in _answers_by(served, [wanted])]
    return [_answer(wanted, found) for wanted, found in zip(batch, lists, strict=True)]


def _answer(wanted: ListRequest, found: ItemList) -> Answer:
    served = wanted.served
    answer: Answer = {} if wanted.user is None else {"user": wanted.user}
    if wanted.arm is not None:
        answer |= {"model": served.version, "arm": wanted.arm}
    answer |= {"source": found.source, "items": served.entries(found, wanted.options.rules)}
    return answer | ({"stale": True} if wanted.stale else {})


def _add_reasons(wanted: ListRequest, answer: Answer) -> Slices[None]:
    served, listed = wanted.served, answer["items"]
    for start in range(0, len(listed), SLICE_REASONS):
        some = listed[start : start + SLICE_REASONS]
        items = served.item_rows([entry["item"] for entry in some])
        try:
            found = reasons_of(served.fitted, wanted.person, items)
        except LtocfError as refusal:
            raise Problem(str(refusal)) from None
        for entry, why in zip(some, found, strict=True):
            entry["reasons"] = shown_reasons(served, why)
        yield


def shown_reasons(served: ServedModel, why: Reasons, most: int | None = REASONS) -> Answer:
    """A score as the sum of the own part, popularity, the largest contributions of the history and
    the rest."""
    largest = np.argsort(-np.abs(why.contributions), kind="stable")[:most]
    shown = np.sort(largest)  # they come largest first
    because = [
        {**served.item(item), "contribution": contribution}
        for item, contribution in zip(
            why.items[shown].tolist(), why.contributions[shown].tolist(), strict=True
        )
    ]
    return {
        "score": why.score,
        "own": why.own,
        "popularity": why.popularity,
        "because": because,
        "others": float(np.delete(why.contributions, shown).sum()),
    }

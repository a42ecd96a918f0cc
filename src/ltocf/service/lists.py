"""Lists for waiting requests: few and short ones in one product, others in slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ltocf.errors import LtocfError
from ltocf.recommend.explain import Reasons, reasons_of
from ltocf.recommend.lists import ItemList, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.service.json_text import to_json
from ltocf.service.problems import Conflict, Problem
from ltocf.service.served_model import ServedModel
from ltocf.service.work.slices import Slices

REASONS = 3  # shown with each item of a list
SHORT_LIST, FEW_LISTS = 100, 4  # a request for more is a large one
MOST_ENTRIES, MOST_REASONS = 100_000, 5_000  # of all lists of one request
SLICE_LISTS, SLICE_ENTRIES, SLICE_REASONS = 8, 1000, 10  # a few milliseconds each


@dataclass(frozen=True, eq=False)
class ListRequest:
    """A request for one list, with the person's present history."""

    served: ServedModel
    person: Person
    options: ListOptions
    user: str | None = None  # their id, if they have one
    reasons: bool = False
    arm: str | None = None  # of an experiment
    stale: bool = False  # the store did not answer, so later events of the person are missing


@dataclass(eq=False)
class ListReply:
    """The answer to a ListRequest."""

    wanted: ListRequest
    found: ItemList
    # Of each item, as JSON, if the request asked for them.
    reasons: list[str] = field(default_factory=list)

    @cached_property
    def members(self) -> bytes:
        """All of the answer except the model, as JSON without braces."""
        wanted = self.wanted
        about = {} if wanted.user is None else {"user": wanted.user}
        about |= {} if wanted.arm is None else {"arm": wanted.arm}
        about["source"] = self.found.source
        items = wanted.served.entries(self.found, wanted.options.rules, self.reasons)
        stale = ',"stale":true' if wanted.stale else ""
        return f'{to_json(about)[1:-1]},"items":{items}{stale}'.encode()

    def text(self, *, with_model: bool) -> bytes:
        """The answer as JSON. In an experiment, each person may have another model, which is then
        named."""
        if with_model or self.wanted.arm is not None:
            version = to_json(self.wanted.served.version).encode()
            return b'{"model":%s,%s}' % (version, self.members)
        return b"{%s}" % self.members


def refuse_too_much(lists: int, k: int, with_reasons: bool, reordered: bool = False) -> None:
    """A Conflict if options that are valid each by itself together ask for too much."""
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
    """Whether these take only a moment: few lists, none of them long, with reasons or reordered."""
    return len(requests) <= FEW_LISTS and not any(
        one.options.k > SHORT_LIST or one.reasons or one.options.rules.reorder for one in requests
    )


def answer_lists(batch: Sequence[ListRequest]) -> list[ListReply | Exception]:
    """A list for each request, made by the model that was served when the request came."""
    answers: dict[int, ListReply | Exception] = {}
    for served in {id(wanted.served): wanted.served for wanted in batch}.values():
        places = [place for place, wanted in enumerate(batch) if wanted.served is served]
        found = _answers_by(served, [batch[place] for place in places])
        answers |= dict(zip(places, found, strict=True))
    return [answers[place] for place in range(len(batch))]


def written_lists(batch: Sequence[ListRequest]) -> list[ListReply | Exception]:
    """The same, with their JSON, so that the event loop does not have to write it."""
    answers = answer_lists(batch)
    for answer in answers:
        if isinstance(answer, ListReply):
            _ = answer.members
    return answers


def list_slices(requests: Sequence[ListRequest]) -> Slices[list[ListReply]]:
    """The same for many lists, long ones or ones with reasons, a few at a time. Their JSON is
    written in these slices too, since that takes long as well."""
    answers: list[ListReply] = []
    step = max(1, min(SLICE_LISTS, SLICE_ENTRIES // max(one.options.k for one in requests)))
    for start in range(0, len(requests), step):
        some = requests[start : start + step]
        found = answer_lists(some)
        yield
        for wanted, one in zip(some, found, strict=True):
            if isinstance(one, Exception):
                raise one
            if wanted.reasons and not one.found.cold:
                yield from _add_reasons(one)
            _ = one.members
            answers.append(one)
        yield
    return answers


def text_slices(requests: Sequence[ListRequest]) -> Slices[tuple[list[ListReply], bytes]]:
    """The answers and their JSON, a few at a time."""
    answers = yield from list_slices(requests)
    return answers, b",".join(answer.text(with_model=False) for answer in answers)


def _answers_by(
    served: ServedModel, batch: Sequence[ListRequest]
) -> Sequence[ListReply | Exception]:
    people, options = [one.person for one in batch], [one.options for one in batch]
    try:
        lists = make_lists(served.fitted, people, options)
    # From a model without lists for newcomers; the other people can be served.
    except LtocfError as refusal:
        if len(batch) == 1:
            return [Problem(str(refusal))]
        return [answer for wanted in batch for answer in _answers_by(served, [wanted])]
    return list(map(ListReply, batch, lists))


def _add_reasons(reply: ListReply) -> Slices[None]:
    served, listed = reply.wanted.served, reply.found.items
    for start in range(0, len(listed), SLICE_REASONS):
        some = listed[start : start + SLICE_REASONS]
        try:
            found = reasons_of(served.fitted, reply.wanted.person, some)
        except LtocfError as refusal:
            raise Problem(str(refusal)) from None
        reply.reasons += [to_json(shown_reasons(served, why)) for why in found]
        yield


def shown_reasons(served: ServedModel, why: Reasons, most: int | None = REASONS) -> dict[str, Any]:
    """A score as the sum of the part from the user's own vector, popularity, the largest
    contributions of the history, and the rest."""
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

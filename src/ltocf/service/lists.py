"""Lists for waiting requests: few and short ones in one product, others in slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ltocf.errors import LtocfError
from ltocf.recommend.explain import Reasons, reasons_of
from ltocf.recommend.lists import ItemList, ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.service.json_text import numbers_to_json, to_json
from ltocf.service.problems import Conflict, Problem
from ltocf.service.served_model import ServedModel
from ltocf.service.work.slices import Slices

REASONS = 3  # shown with each item of a list
SHORT_LIST, FEW_LISTS = 100, 4  # a request for more is a large one
MOST_ENTRIES, MOST_REASONS = 100_000, 5_000  # of all lists of one request
SLICE_LISTS, SLICE_ENTRIES, SLICE_REASONS = 8, 500, 10  # a millisecond or two each
PART_BYTES = 2**17  # of a long answer, sent at a time
FEW_TERMS = 2000  # of the reasons that are found together with a list: items x history


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

    @property
    def unexplained(self) -> bool:
        """Whether reasons are still to be added."""
        wanted = self.wanted.reasons and not self.found.cold
        return wanted and len(self.reasons) < len(self.found.items)

    @property
    def terms(self) -> int:
        """How many terms the reasons of all its items have."""
        history = self.wanted.person.has(self.wanted.served.seen)
        return len(history) * len(self.found.items)

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
    """Whether these take only a moment: few lists, none of them long, reordered or with many
    reasons."""
    return len(requests) <= FEW_LISTS and not any(
        one.options.k > (SLICE_REASONS if one.reasons else SHORT_LIST) or one.options.rules.reorder
        for one in requests
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
    """The same, with their JSON, so that the event loop does not have to write it. Reasons are
    included if they take no longer than the list, and left to `reason_slices` otherwise."""
    answers = answer_lists(batch)
    for place, answer in enumerate(answers):
        if isinstance(answer, ListReply):
            few = len(batch) <= FEW_LISTS and answer.wanted.options.k <= SLICE_REASONS
            if answer.unexplained and few and answer.terms <= FEW_TERMS:
                try:
                    answer.reasons += _reasons_of(answer, slice(None))
                except Problem as refusal:
                    answers[place] = refusal
            if not answer.unexplained:
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
        for one in found:
            if isinstance(one, Exception):
                raise one
            answers.append((yield from reason_slices(one)))
            yield
    return answers


def text_slices(requests: Sequence[ListRequest]) -> Slices[tuple[list[ListReply], list[bytes]]]:
    """The answers and their JSON in parts. To join all of a long answer would take milliseconds in
    which no other thread can do anything."""
    answers = yield from list_slices(requests)
    parts, size, some = [], 0, []
    for place, answer in enumerate(answers, start=1):
        text = answer.text(with_model=False)
        some.append(text + b"," if place < len(answers) else text)
        size += len(text)
        if size >= PART_BYTES:
            parts.append(b"".join(some))
            size, some = 0, []
            yield
    return answers, [*parts, *some]


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


def reason_slices(reply: ListReply) -> Slices[ListReply]:
    """Add the missing reasons and write the list's JSON, a few items at a time."""
    while reply.unexplained:
        start = len(reply.reasons)
        reply.reasons += _reasons_of(reply, slice(start, start + SLICE_REASONS))
        yield
    _ = reply.members
    return reply


def _reasons_of(reply: ListReply, some: slice) -> list[str]:
    """The reasons of some of a list's items, as JSON."""
    served = reply.wanted.served
    try:
        found = reasons_of(served.fitted, reply.wanted.person, reply.found.items[some])
    except LtocfError as refusal:
        raise Problem(str(refusal)) from None
    return ["{" + reasons_text(served, why) + "}" for why in found]


def reasons_text(served: ServedModel, why: Reasons, most: int | None = REASONS) -> str:
    """A score as the sum of the part from the user's own vector, popularity, the largest
    contributions of the history, and the rest: as JSON without braces."""
    first, end = _largest(why, len(why.items) if most is None else most)
    shown = [*range(first), *range(end, len(why.items))]
    others = float(why.contributions[first:end].sum())
    terms = why.contributions[shown].tolist()
    score, own, popularity, rest, *numbers = numbers_to_json(
        [why.score, why.own, why.popularity, others, *terms]
    )
    because = ",".join(
        f'{{{served.item_text(item)},"contribution":{number}}}'
        for item, number in zip(why.items[shown].tolist(), numbers, strict=True)
    )
    return (
        f'"score":{score},"own":{own},"popularity":{popularity},"because":[{because}],'
        f'"others":{rest}'
    )


def _largest(why: Reasons, most: int) -> tuple[int, int]:
    """The largest contributions by their absolute values are those before the first place and from
    the second one on: they come in order, so that large ones are at both ends."""
    sizes, first, end = why.contributions, 0, len(why.contributions)
    while first + len(sizes) - end < most and first < end:
        if abs(sizes[first]) >= abs(sizes[end - 1]):
            first += 1
        else:
            end -= 1
    return first, end

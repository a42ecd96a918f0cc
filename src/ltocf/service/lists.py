"""Lists for those who wait: all in one product where they are few and short, else in slices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ltocf.errors import LtocfError
from ltocf.ranking.top_k import Ranked, rank
from ltocf.recommend.joined import Person, joined_histories, score_people
from ltocf.scorers.scorer import Scores, Terms
from ltocf.service.problems import Problem
from ltocf.service.served_model import ServedModel
from ltocf.service.work.slices import Slices

REASONS = 3  # shown with each item of a list
SHORT_LIST, FEW_LISTS = 100, 4  # beyond which a request is a large one
MOST_ENTRIES, MOST_REASONS = 100_000, 5_000  # of all lists of one request
SLICE_LISTS, SLICE_ENTRIES, SLICE_REASONS = 8, 1000, 10  # a few milliseconds each


@dataclass(frozen=True, eq=False)
class ListRequest:
    """A list for somebody as they are now."""

    served: ServedModel
    person: Person
    k: int
    user: str | None = None  # their id, if they have one
    keep_seen: bool = False
    blocked: NDArray[np.bool_] | None = None  # (n_items,) items that they may not get
    reasons: bool = False
    arm: str | None = None  # of an experiment
    stale: bool = False  # the store did not answer: they may have done more than is known
    popularity: NDArray[np.float32] | None = None  # (n_items,) for those of whom nothing is known


Answer = dict[str, Any]


def refuse_too_much(lists: int, k: int, with_reasons: bool) -> None:
    """A Problem if a request asks for more than one may."""
    most = MOST_REASONS if with_reasons else MOST_ENTRIES
    if lists * k > most:
        what = "items with reasons" if with_reasons else "items"
        raise Problem(
            f"{lists} lists of {k} are more than {most:,} {what} in one request; ask for fewer"
        )


def is_short(lists: int, k: int, with_reasons: bool) -> bool:
    return lists <= FEW_LISTS and k <= SHORT_LIST and not with_reasons


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
    step = max(1, min(SLICE_LISTS, SLICE_ENTRIES // max(one.k for one in requests)))
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
    step = max(1, min(SLICE_LISTS, SLICE_ENTRIES // max(one.k for one in requests)))
    for start in range(0, len(requests), step):
        some = yield from list_slices(requests[start : start + step])
        answers += some
        texts += [to_json(answer) for answer in some]
        yield
    return answers, b",".join(texts)


def to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _answers_by(served: ServedModel, batch: Sequence[ListRequest]) -> Sequence[Answer | Exception]:
    people = [wanted.person for wanted in batch]
    owned = [served.owned(person) for person in people]
    cold = np.array([served.is_cold(person) for person in people])
    try:
        scores = score_people(served.scorer, served.train, people)
    except LtocfError as refusal:  # of a model that knows no newcomers; the others can be served
        if len(batch) == 1:
            return [Problem(str(refusal))]
        return [answer for wanted in batch for answer in _answers_by(served, [wanted])]
    for place in np.flatnonzero(cold).tolist():
        popularity = batch[place].popularity
        if popularity is None:
            popularity = served.seen.item_degrees.astype(np.float32)
        scores[place] = popularity
    ranked = _rank(scores, batch, owned)
    return [
        _answer(wanted, bool(cold[place]), _row(ranked, place))
        for place, wanted in enumerate(batch)
    ]


def _rank(
    scores: Scores, batch: Sequence[ListRequest], owned: Sequence[NDArray[np.int32]]
) -> Ranked:
    for row, wanted, items in zip(scores, batch, owned, strict=True):
        if wanted.blocked is not None:
            row[wanted.blocked] = -np.inf
        if not wanted.keep_seen:
            row[items] = -np.inf
    longest = max(wanted.k for wanted in batch)
    return rank(scores, longest, np.arange(len(batch), dtype=np.int32), None)


def _row(ranked: Ranked, place: int) -> list[tuple[int, float]]:
    pairs = zip(ranked.items[place].tolist(), ranked.scores[place].tolist(), strict=True)
    return [(item, score) for item, score in pairs if item >= 0]


def _answer(wanted: ListRequest, cold: bool, best: list[tuple[int, float]]) -> Answer:
    listed: list[Answer] = [
        {"rank": place, **wanted.served.item(item), "score": score}
        for place, (item, score) in enumerate(best[: wanted.k], start=1)
    ]
    answer: Answer = {} if wanted.user is None else {"user": wanted.user}
    if wanted.arm is not None:
        answer |= {"model": wanted.served.version, "arm": wanted.arm}
    answer |= {"source": "popularity" if cold else "model", "items": listed}
    return answer | ({"stale": True} if wanted.stale else {})


def _add_reasons(wanted: ListRequest, answer: Answer) -> Slices[None]:
    served, listed = wanted.served, answer["items"]
    history = joined_histories(served.train, [wanted.person])
    for start in range(0, len(listed), SLICE_REASONS):
        some = listed[start : start + SLICE_REASONS]
        items = served.item_rows([entry["item"] for entry in some])
        try:
            terms = served.scorer.explain(items, history, wanted.person.row)
        except LtocfError as refusal:
            raise Problem(str(refusal)) from None
        for place, entry in enumerate(some):
            entry["reasons"] = _reasons(served, terms, place, history)
        yield


def reasons(
    served: ServedModel, item: int, history: csr_array, row: int, most: int | None = REASONS
) -> Answer:
    """A score as the sum of the own part, popularity, the largest contributions of the history and
    the rest."""
    terms = served.scorer.explain(np.array([item], np.int32), history, row)
    return _reasons(served, terms, 0, history, most)


def _reasons(
    served: ServedModel, terms: Terms, place: int, history: csr_array, most: int | None = REASONS
) -> Answer:
    own, popularity = float(terms.own[place]), float(terms.popularity[place])
    of_history = terms.of_history[:, place]
    largest = np.argsort(-np.abs(of_history), kind="stable")[:most]
    shown = largest[np.argsort(-of_history[largest], kind="stable")]
    because = [
        {**served.item(history.indices[entry]), "contribution": float(of_history[entry])}
        for entry in shown
    ]
    return {
        "score": own + popularity + float(of_history.sum()),
        "own": own,
        "popularity": popularity,
        "because": because,
        "others": float(np.delete(of_history, shown).sum()),
    }

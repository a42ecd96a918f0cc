"""Lists for those who wait, all in one product: who they are now, their best items, and why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.errors import LtocfError
from ltocf.models.scorer import NOBODY
from ltocf.ranking.top_k import Ranked, rank
from ltocf.recommend.explain import explain_score
from ltocf.recommend.joined import Person, joined_histories, score_people
from ltocf.service.events import EventStore
from ltocf.service.problems import Problem
from ltocf.service.served import Served

POPULARITY_SECONDS = 5.0  # how long a count of everybody's events is good for
REASONS = 3  # shown with each item of a list


@dataclass(frozen=True, eq=False)
class Wanted:
    """A list for a user by id, or for somebody new who is known by their history."""

    served: Served
    who: str | Person
    k: int
    keep_seen: bool = False
    blocked: Tensor | None = None  # (n_items,) items that they may not get
    reasons: bool = False


Answer = dict[str, Any]


class Lists:
    """Answers batches of requests, from one thread."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._counted_at = -np.inf
        self._counted: tuple[Served, NDArray[np.float32]] | None = None

    def __call__(self, batch: Sequence[Wanted]) -> list[Answer | Exception]:
        """A list for each, all of it by the model that was served when it was asked."""
        answers: dict[int, Answer | Exception] = {}
        for served in {id(wanted.served): wanted.served for wanted in batch}.values():
            places = [place for place, wanted in enumerate(batch) if wanted.served is served]
            found = self._by(served, [batch[place] for place in places])
            answers |= dict(zip(places, found, strict=True))
        return [answers[place] for place in range(len(batch))]

    def people(self, served: Served, who: Sequence[str | Person]) -> list[Person]:
        """Who they are now: the data set and all that happened since."""
        users = [one for one in who if isinstance(one, str)]
        events = self.store.of_users(users, after=served.trained) if users else {}
        return [
            served.person(one, events.get(one, ())) if isinstance(one, str) else one for one in who
        ]

    @torch.no_grad()
    def _by(self, served: Served, batch: Sequence[Wanted]) -> Sequence[Answer | Exception]:
        people = self.people(served, [wanted.who for wanted in batch])
        owned = [served.owned(person) for person in people]
        cold = np.array([served.is_cold(person) for person in people])
        try:
            scores = score_people(served.scorer, served.train, people).float().cpu()
        except (
            LtocfError
        ) as refusal:  # of a model that knows no newcomers; the others can be served
            if len(batch) == 1:
                return [Problem(str(refusal))]
            return [answer for wanted in batch for answer in self._by(served, [wanted])]
        if cold.any():
            scores[torch.from_numpy(cold)] = torch.from_numpy(self._popular(served))
        ranked = _rank(scores, batch, owned)
        return [
            _answer(wanted, person, cold[place], _row(ranked, place))
            for place, (wanted, person) in enumerate(zip(batch, people, strict=True))
        ]

    def _popular(self, served: Served) -> NDArray[np.float32]:
        stale = time.monotonic() - self._counted_at > POPULARITY_SECONDS
        if stale or self._counted is None or self._counted[0] is not served:
            self._counted = served, served.popularity(self.store.item_counts(served.trained))
            self._counted_at = time.monotonic()
        return self._counted[1]


def _rank(scores: Tensor, batch: Sequence[Wanted], owned: Sequence[NDArray[np.int32]]) -> Ranked:
    scores = scores.contiguous()
    for row, wanted, items in zip(scores, batch, owned, strict=True):
        if wanted.blocked is not None:
            row.masked_fill_(wanted.blocked, -torch.inf)
        if not wanted.keep_seen:
            row[torch.from_numpy(items).long()] = -torch.inf
    longest = max(wanted.k for wanted in batch)
    return rank(scores, longest, np.arange(len(batch), dtype=np.int32), None)


def _row(ranked: Ranked, place: int) -> list[tuple[int, float]]:
    pairs = zip(ranked.items[place].tolist(), ranked.scores[place].tolist(), strict=True)
    return [(item, score) for item, score in pairs if item >= 0]


def _answer(
    wanted: Wanted, person: Person, cold: bool, best: list[tuple[int, float]]
) -> Answer | Exception:
    served, best = wanted.served, best[: wanted.k]
    listed: list[Answer] = [
        {"rank": place, **served.item(item), "score": score}
        for place, (item, score) in enumerate(best, start=1)
    ]
    if wanted.reasons and not cold:
        history = joined_histories(served.train, [person])
        try:
            for entry, (item, _) in zip(listed, best, strict=True):
                entry["reasons"] = reasons(served, item, history, person.row)
        except LtocfError as refusal:
            return Problem(str(refusal))
    answer: Answer = {"user": wanted.who} if isinstance(wanted.who, str) else {}
    return answer | {"source": "popularity" if cold else "model", "items": listed}


def reasons(
    served: Served, item: int, history: csr_array, row: int, most: int | None = REASONS
) -> Answer:
    """A score as the sum of the own part, the largest contributions of the history and the rest."""
    user = None if row == NOBODY else row
    terms = explain_score(served.scorer, item, history, user)
    largest = np.argsort(-np.abs(terms.of_history), kind="stable")[:most]
    shown = largest[np.argsort(-terms.of_history[largest], kind="stable")]
    because = [
        {**served.item(history.indices[place]), "contribution": float(terms.of_history[place])}
        for place in shown
    ]
    return {
        "score": terms.own + float(terms.of_history.sum()),
        "own": terms.own,
        "because": because,
        "others": float(np.delete(terms.of_history, shown).sum()),
    }

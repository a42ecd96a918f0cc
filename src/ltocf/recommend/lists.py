"""The only path from people to lists: score, cold start, mask, rules, rank.

The shell, Python, bulk files, the service and its live quality all use it. The names of items are
in the catalogue (`names`), and the reasons of scores in `explain.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltocf.data.catalogue import ItemChange
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Id, IdMap, Interactions, Rows
from ltocf.ranking.top_k import MANY, Products, Ranked, rank, ranked_by_products, tile_bytes
from ltocf.recommend.ids import as_list, known_rows
from ltocf.recommend.people import Person, score_people
from ltocf.recommend.rules import ItemRules, Rules
from ltocf.recommend.rules.conditions import shelf_of
from ltocf.recommend.rules.diversity import Likeness, item_likeness, vectors_of
from ltocf.recommend.rules.impressions import fading, scale_, scaled
from ltocf.recommend.rules.reorder import pool_size, reordered
from ltocf.scorers.complete import complete
from ltocf.scorers.scorer import NOBODY, Scorer, Scores

if TYPE_CHECKING:
    from ltocf.models.base import Model


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What lists are made of: a model's scorer, its data, and the pairs that it learned from. The
    model itself is built only on request, since that needs torch."""

    dataset: Dataset
    scorer: Scorer
    train: Interactions
    make_model: Callable[[], Model]

    @cached_property
    def model(self) -> Model:
        return self.make_model()

    def with_items(self, changes: Sequence[ItemChange]) -> FittedModel:
        """The same model with the catalogue after these changes: a new item is scored as if it had
        been there in training and nobody had touched it."""
        dataset = self.dataset.with_changes(changes)
        ids = dataset.catalogue.ids
        train = self.train.on_items(ids, dataset.split.train.tags)
        rows = ids.find([change.item for change in changes])
        changed = rows[train.item_degrees[rows] == 0]
        scorer = complete(self.scorer, train, self.train.n_items, changed)
        return replace(self, dataset=dataset, scorer=scorer, train=train)

    @property
    def seen(self) -> Interactions:
        """The pairs that known users have liked; a user who has liked nothing gets what is
        popular."""
        return self.dataset.split.seen

    @property
    def known(self) -> Interactions:
        """The items that known users have seen, liked or not, which are not recommended to them."""
        return self.dataset.split.known

    @cached_property
    def item_vectors(self) -> Likeness:
        """The vectors that measure how similar the model finds items."""
        vectors = self.scorer.vectors()
        return vectors_of(None if vectors is None else vectors.items, self.seen)


Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ListOptions:
    """The options of a list, apart from the person."""

    k: int = 10
    keep_seen: bool = False
    blocked: Mask | None = None  # (n_items,) items that must not be listed: `blocked_items`
    rules: Rules = Rules()  # noqa: RUF009 - immutable
    fade_after: float = 0.0  # items shown so often and not taken count half; 0: never
    # (n_items,) scores for people without a history; default: how many users have each item.
    popularity: NDArray[np.floating] | None = None


class ItemList(NamedTuple):
    """The best first; shorter than requested if there are not enough items."""

    items: Rows
    scores: NDArray[np.float32]
    cold: bool = False  # the person has no history, so this is what is popular

    @property
    def source(self) -> str:
        return "popularity" if self.cold else "model"


def blocked_items(
    ids: IdMap, candidates: Iterable[Id] | None, exclude: Id | Iterable[Id]
) -> Mask | None:
    """A mask of the items that must not be in any list; None if there are none. (n_items,)"""
    excluded = as_list(exclude)
    if candidates is None and not excluded:
        return None
    out = ids.find(excluded)
    blocked = np.full(len(ids), candidates is not None)
    if candidates is not None:
        blocked[known_rows(ids, candidates, "candidate", strict=False)] = False
    blocked[out[out >= 0]] = True
    return blocked


def make_lists(
    fitted: FittedModel,
    people: Sequence[Person],
    options: ListOptions | Sequence[ListOptions],
    *,
    gradient_steps: int = 0,
) -> list[ItemList]:
    """A list for each person, by shared options or by options for each.

    One matrix product serves all of them, so ask for many people at a time.
    """
    each = _each(options, len(people))
    products = None
    if isinstance(options, ListOptions) and not gradient_steps:
        products = _enough_products(fitted, people, options)
    if products is not None:
        lists = _by_products(fitted, products, people, each[0])
    else:
        lists = _by_scores(fitted, people, each, gradient_steps)
    colds = (not len(person.has(fitted.seen)) for person in people)
    return [found._replace(cold=cold) for found, cold in zip(lists, colds, strict=True)]


def _by_scores(
    fitted: FittedModel,
    people: Sequence[Person],
    each: Sequence[ListOptions],
    gradient_steps: int = 0,
) -> Iterator[ItemList]:
    def score(some: slice) -> Scores:
        return final_scores(
            fitted, people[some], each[some], gradient_steps=gradient_steps, listed_alone=True
        )

    return _ranked(fitted, score, each)


def _enough_products(
    fitted: FittedModel, people: Sequence[Person], options: ListOptions
) -> Products | None:
    """Vectors whose products are all that the lists of these people are ranked by, if they are:
    those of many known users who have done nothing since."""
    if len(people) < MANY:
        return None
    rules = options.rules.on(shelf_of(fitted.dataset))
    if rules.factors is not None or rules.rules.reorder:
        return None
    if any(
        person.row == NOBODY or person.changed or len(person.shown) or len(person.met)
        for person in people
    ):
        return None
    return fitted.scorer.products()


def _by_products(
    fitted: FittedModel, products: Products, people: Sequence[Person], options: ListOptions
) -> Iterator[ItemList]:
    """The same without a table of scores."""
    allowed = np.ones(len(products.items), dtype=bool)
    for blocked in (options.blocked, options.rules.on(shelf_of(fitted.dataset)).blocked):
        if blocked is not None:
            allowed &= ~blocked[: len(allowed)]
    users = np.array([person.row for person in people], dtype=np.int32)
    warm = fitted.seen.user_degrees[users] > 0
    k, only = min(options.k, len(allowed)), np.flatnonzero(allowed).astype(np.int32)
    seen = None if options.keep_seen else fitted.known
    tiles = ranked_by_products(products, users[warm], k, seen=seen, only=only)
    found = (of_one for ranked in tiles for of_one in _as_lists(ranked))
    rest = [person for person, known in zip(people, warm, strict=True) if not known]
    popular = _by_scores(fitted, rest, [options] * len(rest))
    return (next(found if known else popular) for known in warm)


def final_scores(
    fitted: FittedModel,
    people: Sequence[Person],
    options: ListOptions | Sequence[ListOptions],
    *,
    gradient_steps: int = 0,
    listed_alone: bool = False,
) -> Scores:
    """The scores that lists are ranked by; -inf where an item must not be listed or, if only listed
    items matter, cannot be. (len(people), n_items)"""
    each = _each(options, len(people))
    most = _enough(fitted, people, each) if listed_alone else None
    scores = score_people(
        fitted.scorer, fitted.train, people, gradient_steps=gradient_steps, most=most
    )
    for place, (person, theirs) in enumerate(zip(people, each, strict=True)):
        if not len(person.has(fitted.seen)):
            popular = fitted.seen.item_degrees if theirs.popularity is None else theirs.popularity
            scores[place] = popular
        if len(person.shown) and theirs.fade_after:
            items, times = np.unique(person.shown, return_counts=True)
            factors = fading(times, theirs.fade_after)
            scores[place, items] = scaled(scores[place, items], factors)
    owned = [
        person.has(fitted.known)
        for person, theirs in zip(people, each, strict=True)
        if not theirs.keep_seen
    ]
    if owned:
        places = np.flatnonzero([not theirs.keep_seen for theirs in each])
        owners = np.repeat(places, [len(items) for items in owned])
        scores[owners, np.concatenate(owned)] = -np.inf
    for place, person in enumerate(people):
        if len(person.met):
            scores[place, person.met] = -np.inf
    _apply_rules_(fitted, scores, each)
    return scores


def _enough(
    fitted: FittedModel, people: Sequence[Person], each: Sequence[ListOptions]
) -> list[int] | None:
    """Among how many of the model's best scores each one's list is, whichever of them are lowered
    or left out; none where a score may be raised, or others be preferred to higher ones."""
    left_out: list[int] = []
    for some, options, rules in _groups(fitted, each):
        if rules.factors is not None or rules.rules.reorder:
            return None
        blocked = 0 if options.blocked is None else np.count_nonzero(options.blocked)
        left_out += [int(blocked) + rules.n_blocked] * (some.stop - some.start)
    return [
        min(options.k, fitted.seen.n_items)
        + out
        + (0 if options.keep_seen else len(person.has(fitted.known)))
        + len(person.met)
        + len(person.shown)
        for person, options, out in zip(people, each, left_out, strict=True)
    ]


def similar_items(fitted: FittedModel, rows: Rows, options: ListOptions) -> list[ItemList]:
    """The items most similar to each, within the rules."""
    each = _each(options, len(rows))

    def score(some: slice) -> Scores:
        scores = _others(fitted.scorer.similar_items(rows[some]), rows[some])
        _apply_rules_(fitted, scores, each[some])
        return scores

    return list(_ranked(fitted, score, each))


def similar_users(fitted: FittedModel, rows: Rows, k: int) -> list[ItemList]:
    """The users most similar to each, as rows in place of items."""
    scores = _others(fitted.scorer.similar_users(rows), rows)
    return list(_as_lists(rank(scores, k, rows, seen=None)))


def _each(options: ListOptions | Sequence[ListOptions], count: int) -> Sequence[ListOptions]:
    return [options] * count if isinstance(options, ListOptions) else options


def _others(scores: Scores, themselves: Rows) -> Scores:
    """Scores in which nothing is similar to itself; in place."""
    scores[np.arange(len(themselves)), themselves] = -np.inf
    return scores


def _ranked(
    fitted: FittedModel, score: Callable[[slice], Scores], each: Sequence[ListOptions]
) -> Iterator[ItemList]:
    """Rank, a tile of scores at a time, and reorder if the rules require it."""
    n_items = fitted.seen.n_items
    tile = tile_bytes(n_items) // (4 * n_items)
    for start in range(0, len(each), tile):
        scores = score(slice(start, start + tile))
        groups = list(_groups(fitted, each[start : start + tile]))
        sizes = [pool_size(rules, options.k, n_items) for _, options, rules in groups]
        everybody = np.arange(len(scores), dtype=np.int32)
        ranked = rank(scores, max(sizes), everybody, seen=None)
        for (some, options, rules), size in zip(groups, sizes, strict=True):
            pool = Ranked(ranked.items[some, :size], ranked.scores[some, :size])
            if rules.rules.reorder:
                likeness = item_likeness(
                    rules.rules, fitted.dataset.catalogue, lambda: fitted.item_vectors
                )
                pool = reordered(pool, options.k, rules, likeness, scores[some].__getitem__)
            yield from _as_lists(pool)


def _as_lists(ranked: Ranked) -> Iterator[ItemList]:
    counts = (ranked.items >= 0).sum(axis=1).tolist()
    for items, scores, count in zip(*ranked, counts, strict=True):
        yield ItemList(items[:count], scores[:count])


def _groups(
    fitted: FittedModel, each: Sequence[ListOptions]
) -> Iterator[tuple[slice, ListOptions, ItemRules]]:
    """Consecutive people with the same options, and those options' rules on the rows of items."""
    for _, some in groupby(range(len(each)), key=lambda place: id(each[place])):
        places = list(some)
        options = each[places[0]]
        rules = options.rules.on(shelf_of(fitted.dataset))
        yield slice(places[0], places[-1] + 1), options, rules


def _apply_rules_(fitted: FittedModel, scores: Scores, each: Sequence[ListOptions]) -> None:
    """Boost and block, in place. A catalogue may have items that the model does not have."""
    n_items = scores.shape[1]
    for some, options, rules in _groups(fitted, each):
        if rules.factors is not None:
            items = rules.boosted_items
            items = items[: np.searchsorted(items, n_items)]
            scale_(scores[some], items, rules.factors[items])
        if rules.penalty is not None:
            scores[some] += rules.penalty[:n_items]  # ten times faster than writing through a mask
        if options.blocked is not None:
            scores[some, options.blocked] = -np.inf

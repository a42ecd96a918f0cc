"""Questions to a fitted model: ids in, ids out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Id, Interactions, Rows
from ltocf.models.base import Model
from ltocf.models.scorer import Scorer
from ltocf.ranking.top_k import length_of_list, top_k
from ltocf.recommend.explain import Explanation, explain_score
from ltocf.recommend.ids import known_rows, rows_of_histories, unknown_ids
from ltocf.recommend.new_users import history_matrix, score_new
from ltocf.recommend.requests import apply_popularity_and_blocks_, blocked_items, owned_pairs
from ltocf.recommend.similar import similar_items, similar_users
from ltocf.recommend.tables import ranked_table, with_display


@dataclass(frozen=True)
class Fitted:
    """What answers questions: a trained model, its data, and the model's cheap half."""

    model: Model
    dataset: Dataset
    scorer: Scorer

    @property
    def seen(self) -> Interactions:
        return self.dataset.split.seen


class Answers(ABC):
    """What can be asked of somebody who has a fitted model."""

    @property
    @abstractmethod
    def fitted(self) -> Fitted:
        """The model, its data and its cheap half."""

    @property
    def model(self) -> Model:
        return self.fitted.model

    @property
    def dataset(self) -> Dataset:
        return self.fitted.dataset

    @property
    def scorer(self) -> Scorer:
        return self.fitted.scorer

    def recommend(
        self,
        users: Id | Iterable[Id],
        k: int = 10,
        *,
        keep_seen: bool = False,
        candidates: Iterable[Id] | None = None,
        exclude: Iterable[Id] = (),
        strict: bool = False,
    ) -> pl.DataFrame:
        """The k best items of each user, or as many as there are, best first: columns user, rank,
        item, score, source, and what the data set has to display of an item.

        Items that a user has met, liked or not, are left out unless `keep_seen`. `candidates` are
        the only items to choose from, `exclude` are never chosen; ids in them that are no item are
        passed over. Of many users the unknown are left out (`unknown_users` lists them), or with
        `strict` a DataError; so is one user who is unknown. Who has no history gets what is
        popular, and `source` is then 'popularity' instead of 'model'.
        """
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        rows = known_rows(seen.user_ids, users, "user", strict=strict)
        cold, blocked = seen.user_degrees == 0, blocked_items(seen.item_ids, candidates, exclude)
        scorer, popularity = self.scorer, seen.item_degrees
        ranked = top_k(
            lambda part: apply_popularity_and_blocks_(
                scorer(part), cold[part], popularity, blocked
            ),
            rows,
            k,
            n_items=seen.n_items,
            seen=None if keep_seen else self.dataset.split.known,
        )
        owners = seen.user_ids.ids[rows].rename("user")
        table, items = ranked_table(owners, ranked, seen.item_ids.ids.rename("item"), cold[rows])
        return with_display(table, self.dataset, items)

    def recommend_new(
        self,
        history: Sequence[Id] | Mapping[Id, Sequence[Id]],
        k: int = 10,
        *,
        keep_seen: bool = False,
        candidates: Iterable[Id] | None = None,
        exclude: Iterable[Id] = (),
        strict: bool = False,
        gradient_steps: int = 0,
    ) -> pl.DataFrame:
        """The same for people who were not there in training, from the items they have.

        One history, or many as {name: history}, which adds the column user. Unknown items in it
        are passed over, or with `strict` a DataError. An empty history gets what is popular, and
        `source` is then 'popularity'; so does, among many, one of unknown items only, which alone
        is a DataError. To a model with `recency` the order counts: the latest item comes last.
        With `gradient_steps`, each one's own vector takes that many on their history, which models
        without a graph cannot do without.
        """
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        if isinstance(history, Mapping):
            named: Mapping[Id, Sequence[Id]] = history
            rows = rows_of_histories(seen.item_ids, named, strict=strict)
        else:
            named = {"": history}
            rows = [known_rows(seen.item_ids, history, "item", strict=strict)]
        matrix = history_matrix(rows, seen.n_items)
        owned = owned_pairs(matrix, seen.item_ids)
        blocked = blocked_items(seen.item_ids, candidates, exclude)
        cold, popularity, scorer = owned.user_degrees == 0, seen.item_degrees, self.scorer

        def score(part: Rows) -> Tensor:
            scores = torch.zeros(len(part), seen.n_items)
            if (warm := ~cold[part]).any():  # a model may refuse histories; nobody has one here
                scores[torch.from_numpy(warm)] = score_new(
                    scorer, csr_array(matrix[part[warm]]), steps=gradient_steps
                ).cpu()
            return apply_popularity_and_blocks_(scores, cold[part], popularity, blocked)

        people = np.arange(len(named), dtype=np.int32)
        ranked = top_k(score, people, k, n_items=seen.n_items, seen=None if keep_seen else owned)
        owners = pl.Series("user", list(named), strict=False)
        table, items = ranked_table(owners, ranked, seen.item_ids.ids.rename("item"), cold)
        table = with_display(table, self.dataset, items)
        return table if isinstance(history, Mapping) else table[:, 1:]

    def unknown_users(self, users: Iterable[Id]) -> list[Id]:
        """Those that were not in the training data, in their order."""
        return unknown_ids(self.fitted.seen.user_ids, users)

    def unknown_items(self, items: Iterable[Id]) -> list[Id]:
        return unknown_ids(self.fitted.seen.item_ids, items)

    def similar_items(self, items: Id | Iterable[Id], k: int = 10) -> pl.DataFrame:
        """The k items most like each: columns item, rank, similar, score, and what there is to
        display of the similar one. The score is the cosine of the two items' vectors, or for a
        closed form what it gives to somebody who has that item alone."""
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        rows = known_rows(seen.item_ids, items, "item", strict=True)
        ids = seen.item_ids.ids
        ranked = similar_items(self.scorer, rows, k)
        table, similar = ranked_table(ids[rows].rename("item"), ranked, ids.rename("similar"))
        return with_display(table, self.dataset, similar)

    def similar_users(self, users: Id | Iterable[Id], k: int = 10) -> pl.DataFrame:
        """The k users most like each, by the cosine of their vectors, or for a closed form of
        their histories: columns user, rank, similar, score."""
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_users)
        rows = known_rows(seen.user_ids, users, "user", strict=True)
        ids = seen.user_ids.ids
        ranked = similar_users(self.scorer, rows, k)
        return ranked_table(ids[rows].rename("user"), ranked, ids.rename("similar"))[0]

    def explain(self, user: Id, item: Id) -> Explanation:
        """The exact reasons of the score that `recommend` gives with `keep_seen`."""
        train = self.model.graph.interactions
        (row,) = train.user_ids.rows([user], kind="user")
        (user,) = train.user_ids[np.array([row])]
        return self._explain(user, item, histories_of(train)[[row]], row)

    def explain_new(self, history: Sequence[Id], item: Id, *, strict: bool = False) -> Explanation:
        """The same for somebody known by their history alone."""
        rows = known_rows(self.fitted.seen.item_ids, history, "item", strict=strict)
        return self._explain(None, item, history_matrix([rows], self.fitted.seen.n_items))

    def _explain(
        self, user: Id | None, item: Id, history: csr_array, row: int | None = None
    ) -> Explanation:
        ids = self.fitted.seen.item_ids
        (target,) = ids.rows([item], kind="item")
        terms = explain_score(self.scorer, target, history, row)
        order = np.argsort(-terms.of_history, kind="stable")
        items = history.indices[order]
        because = pl.DataFrame(
            [
                ids.ids[items].rename("item"),
                pl.Series("contribution", terms.of_history[order]),
            ]
        )
        (own_id,) = ids[np.array([target])]
        return Explanation(
            user,
            own_id,
            terms.own + float(terms.of_history.sum()),
            terms.own,
            with_display(because, self.dataset, items),
        )

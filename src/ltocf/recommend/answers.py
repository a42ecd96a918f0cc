"""Questions to a fitted model: ids in, ids out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.data.interactions import Id, Rows
from ltocf.ranking.top_k import length_of_list
from ltocf.recommend.boards import board
from ltocf.recommend.explain import Explanation, tags_in_common
from ltocf.recommend.fitted import Fitted as Fitted
from ltocf.recommend.ids import known_rows, rows_of_histories, unknown_ids
from ltocf.recommend.new_users import history_matrix, score_new
from ltocf.recommend.requests import apply_popularity_and_blocks_, blocked_items, owned_pairs
from ltocf.recommend.rules import Rules
from ltocf.recommend.similar import others, similar_users
from ltocf.recommend.tables import ranked_table, with_boosts, with_display
from ltocf.scorers.scorer import NOBODY, Scorer, Scores

if TYPE_CHECKING:
    from ltocf.models.base import Model


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
        without: Id | Iterable[Id] = (),
        rules: Rules | None = None,
        strict: bool = False,
    ) -> pl.DataFrame:
        """The k best items of each user, or as many as there are, best first: columns user, rank,
        item, score, source, and what the data set has to display of an item.

        Items that a user has met, liked or not, are left out unless `keep_seen`. `candidates` are
        the only items to choose from, `exclude` are never chosen; ids in them that are no item are
        passed over. `rules` say more, such as `Rules.parse(["category=tea"], boost=["new:1.2"])`;
        `moved_by` then names the boosts of an item. What is not available is left out. Of many
        users the unknown are left out (`unknown_users` lists them), or with `strict` a DataError;
        so is one user who is unknown. Who has no history gets what is
        popular, and `source` is then 'popularity' instead of 'model'.
        `without` are items that count as if these users had never touched them: what the list
        would be, exactly, with the model as it is.
        """
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        rows = known_rows(seen.user_ids, users, "user", strict=strict)
        cold, blocked = seen.user_degrees == 0, blocked_items(seen.item_ids, candidates, exclude)
        removed = known_rows(seen.item_ids, without, "item", strict=True)
        score, mask = self.fitted.known_people(rows, removed)
        popularity = seen.item_degrees
        if len(removed):
            cold = mask.user_degrees == 0
        ranked, on = self.fitted.lists(
            lambda part: apply_popularity_and_blocks_(score(part), cold[part], popularity, blocked),
            rows,
            k,
            rules,
            None if keep_seen else mask,
        )
        owners = seen.user_ids.ids[rows].rename("user")
        table, items = ranked_table(owners, ranked, seen.item_ids.ids.rename("item"), cold[rows])
        return with_display(with_boosts(table, on, items), self.dataset, items)

    def recommend_new(
        self,
        history: Sequence[Id] | Mapping[Id, Sequence[Id]],
        k: int = 10,
        *,
        keep_seen: bool = False,
        candidates: Iterable[Id] | None = None,
        exclude: Iterable[Id] = (),
        rules: Rules | None = None,
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

        def score(part: Rows) -> Scores:
            scores = np.zeros((len(part), seen.n_items), np.float32)
            if (warm := ~cold[part]).any():  # a model may refuse histories; nobody has one here
                scores[warm] = score_new(
                    scorer, csr_array(matrix[part[warm]]), steps=gradient_steps
                )
            return apply_popularity_and_blocks_(scores, cold[part], popularity, blocked)

        people = np.arange(len(named), dtype=np.int32)
        ranked, on = self.fitted.lists(score, people, k, rules, None if keep_seen else owned)
        owners = pl.Series("user", list(named), strict=False)
        table, items = ranked_table(owners, ranked, seen.item_ids.ids.rename("item"), cold)
        table = with_display(with_boosts(table, on, items), self.dataset, items)
        return table if isinstance(history, Mapping) else table[:, 1:]

    def unknown_users(self, users: Iterable[Id]) -> list[Id]:
        """Those that were not in the training data, in their order."""
        return unknown_ids(self.fitted.seen.user_ids, users)

    def unknown_items(self, items: Iterable[Id]) -> list[Id]:
        return unknown_ids(self.fitted.seen.item_ids, items)

    def similar_items(
        self, items: Id | Iterable[Id], k: int = 10, *, rules: Rules | None = None
    ) -> pl.DataFrame:
        """The k items most like each, as the rules allow: columns item, rank, similar, score, and
        the attributes of the similar one. The score is the cosine of the two items' vectors, or for
        a closed form what it gives to somebody who has that item alone."""
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_items)
        rows = known_rows(seen.item_ids, items, "item", strict=True)
        ids = seen.item_ids.ids
        ranked, on = self.fitted.lists(
            lambda part: others(self.scorer.similar_items(part), part), rows, k, rules, None
        )
        table, similar = ranked_table(ids[rows].rename("item"), ranked, ids.rename("similar"))
        return with_display(with_boosts(table, on, similar), self.dataset, similar)

    def similar_users(self, users: Id | Iterable[Id], k: int = 10) -> pl.DataFrame:
        """The k users most like each, by the cosine of their vectors, or for a closed form of
        their histories: columns user, rank, similar, score."""
        seen = self.fitted.seen
        k = length_of_list(k, seen.n_users)
        rows = known_rows(seen.user_ids, users, "user", strict=True)
        ids = seen.user_ids.ids
        ranked = similar_users(self.scorer, rows, k)
        return ranked_table(ids[rows].rename("user"), ranked, ids.rename("similar"))[0]

    def board(
        self,
        kind: str = "popular",
        k: int = 10,
        *,
        window: timedelta | None = None,
        rules: Rules | None = None,
    ) -> pl.DataFrame:
        """What is 'popular', 'trending' or 'new' with everybody: columns rank, item, touches (or
        growth, or arrived), and the items' attributes."""
        return board(self.dataset, kind, k, window=window, rules=rules)

    def explain(self, user: Id, item: Id) -> Explanation:
        """The exact reasons of the score that `recommend` gives with `keep_seen`."""
        train = self.fitted.train
        (row,) = train.user_ids.rows([user], kind="user")
        (user,) = train.user_ids[np.array([row])]
        return self._explain(user, item, histories_of(train)[[row]], row)

    def explain_new(self, history: Sequence[Id], item: Id, *, strict: bool = False) -> Explanation:
        """The same for somebody known by their history alone."""
        rows = known_rows(self.fitted.seen.item_ids, history, "item", strict=strict)
        return self._explain(None, item, history_matrix([rows], self.fitted.seen.n_items))

    def _explain(
        self, user: Id | None, item: Id, history: csr_array, row: int = NOBODY
    ) -> Explanation:
        ids = self.fitted.seen.item_ids
        (target,) = ids.rows([item], kind="item")
        terms = self.scorer.explain(np.array([target], np.int32), history, row)
        own, popularity = float(terms.own[0]), float(terms.popularity[0])
        of_history = terms.of_history[:, 0]
        order = np.argsort(-of_history, kind="stable")
        items = history.indices[order]
        because = pl.DataFrame(
            [
                ids.ids[items].rename("item"),
                pl.Series("contribution", of_history[order]),
            ]
        )
        (own_id,) = ids[np.array([target])]
        in_common: tuple[str, ...] = ()
        if len(items) and not self.fitted.seen.item_degrees[target]:
            in_common = tags_in_common(self.dataset.catalogue, int(target), int(items[0]))
        return Explanation(
            user,
            own_id,
            own + popularity + float(of_history.sum()),
            own,
            with_display(because, self.dataset, items),
            popularity,
            in_common,
        )

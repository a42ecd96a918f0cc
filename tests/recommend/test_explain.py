"""The terms of a score sum to it, exactly, for everybody and every model that is such a sum."""

import tracemalloc

import numpy as np
import polars as pl
import pytest
import torch

from ltocf.data.dataset import Dataset
from ltocf.data.histories import histories_of
from ltocf.errors import ConfigError, DataError
from ltocf.filters.chebyshev import evaluate
from ltocf.models import MODELS
from ltocf.recommend.explain import Explanation
from ltocf.recommend.recommender import Recommender
from tests.models.toys import used_by

SUMS = {
    "ltocf",
    "lightgcn",
    "popularity",
    "gfcf",
    "bspm",
    "chebycf",
    "turbocf",
    "ease",
    "sparse_ease",
}
SUMS |= {"rp3beta", "itemknn", "blend", "transitions", "ials", "attributes", "svdae"}


def fit(name: str, hamlet: Dataset, **settings: object) -> Recommender:
    fields = MODELS[name].Config.model_fields
    small = {key: 8 for key in ("dim", "rank") if key in fields}
    return Recommender(name, **used_by(name, epochs=2, negatives=4), **small, **settings).fit(
        hamlet
    )


@pytest.fixture(scope="module")
def town(hamlet) -> Recommender:
    return fit("ltocf", hamlet)


@pytest.mark.parametrize("name", MODELS)
def test_the_terms_sum_to_the_score_or_the_model_says_that_it_is_no_sum(name, hamlet):
    recommender = fit(name, hamlet)
    best = recommender.recommend(hamlet.split.train.user_ids.ids.head(3).to_list(), 3)
    for row in best.iter_rows(named=True):
        if name not in SUMS:
            with pytest.raises(ConfigError, match="no exact reasons; use ltocf"):
                recommender.explain(row["user"], row["item"])
            continue
        why = recommender.explain(row["user"], row["item"])
        total = why.own + why.popularity + why.because["contribution"].sum()
        assert why.score == pytest.approx(total, abs=1e-12)
        assert total == pytest.approx(row["score"], rel=1e-5, abs=1e-5)
        user = hamlet.split.train.user_ids.find([row["user"]])[0]
        has = hamlet.split.train.item_ids[hamlet.split.train.items_of(user)]
        assert sorted(why.because["item"]) == sorted(has)


@pytest.mark.parametrize("name", ["ltocf", "lightgcn"])
@pytest.mark.parametrize("normalise", [True, "training"])
def test_cosine_scores_split_exactly_too(name, normalise, hamlet):
    recommender = fit(name, hamlet, normalise=normalise)
    row = recommender.recommend(hamlet.split.train.user_ids.ids[5], 1).to_dicts()[0]
    why = recommender.explain(row["user"], row["item"])
    assert why.own + why.popularity + why.because["contribution"].sum() == pytest.approx(
        row["score"], abs=1e-5
    )


def test_a_blend_of_a_trained_model_and_a_closed_form_splits_exactly(hamlet):
    parts = [
        {"model": "ltocf", "weight": 1.0, "options": {"dim": 8}},
        {"model": "ease", "weight": 0.5},
    ]
    recommender = Recommender("blend", epochs=1, members=parts).fit(hamlet)
    row = recommender.recommend(hamlet.split.train.user_ids.ids[5], 1).to_dicts()[0]
    why = recommender.explain(row["user"], row["item"])
    assert why.own != 0
    assert why.own + why.popularity + why.because["contribution"].sum() == pytest.approx(
        row["score"], rel=1e-5
    )


def test_the_own_part_is_the_response_at_zero_times_the_users_vector(town, hamlet):
    user, item = hamlet.split.train.user_ids.ids[7], hamlet.split.train.item_ids.ids[11]
    model = town.model
    h0 = float(evaluate(model.coefficients().detach(), torch.zeros(1, dtype=torch.float64)))
    expected = h0 * float(model.weight[7].detach().numpy() @ town.scorer.items[11])
    assert town.explain(user, item).own == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_a_score_by_popularity_alone_has_no_reason_in_the_history(hamlet):
    recommender = fit("popularity", hamlet)
    item = hamlet.split.train.item_ids.ids[0]
    why = recommender.explain(hamlet.split.train.user_ids.ids[0], item)
    assert why.popularity == pytest.approx(np.log1p(hamlet.split.train.item_degrees[0]), rel=1e-6)
    assert why.because["contribution"].abs().max() == 0
    assert "no item of the history" in why.sentence()


@pytest.mark.parametrize("name", sorted(SUMS - {"popularity"}))
def test_reasons_for_somebody_new_sum_to_their_score(name, hamlet):
    recommender = fit(name, hamlet)
    history = hamlet.split.train.item_ids.ids.sample(6, seed=1).to_list()
    row = recommender.recommend_new(history, 1).to_dicts()[0]
    why = recommender.explain_new([*history, history[0]], row["item"])
    assert why.user is None
    assert why.own == pytest.approx(0, abs=1e-6)
    total = why.popularity + why.because["contribution"].sum()
    assert total == pytest.approx(row["score"], rel=1e-5, abs=1e-5)


def test_reasons_are_named_with_the_largest_first(town, hamlet):
    person = hamlet.split.train.user_ids.ids[3]
    why = town.explain(person, town.recommend(person, 1)["item"][0])
    assert why.because["contribution"].is_sorted(descending=True)
    names = why.because["name"].head(3).to_list()
    assert why.sentence() == f"because of {names[0]}, {names[1]} and {names[2]}"
    assert why.sentence(1) == f"because of {names[0]}"


def test_the_reason_in_two_communities_is_ones_own_community():
    pairs = [(f"u{c}{u}", f"i{c}{i}") for c in "ab" for u in range(5) for i in range(5) if u != i]
    log = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    both = pl.DataFrame({"user": ["mixed"] * 3, "item": ["ia0", "ia1", "ib0"]})
    recommender = Recommender("ltocf", dim=8, epochs=30, negatives=4).fit(pl.concat([log, both]))
    why = recommender.explain("mixed", "ia3")
    assert why.because["item"].to_list()[2] == "ib0"


def test_unknown_ids_are_named(town, hamlet):
    item = hamlet.split.train.item_ids.ids[0]
    with pytest.raises(DataError, match="unknown user 'nobody'"):
        town.explain("nobody", item)
    with pytest.raises(DataError, match="unknown item 'nothing'"):
        town.explain(hamlet.split.train.user_ids.ids[0], "nothing")


def test_a_user_without_history_has_only_their_own_part():
    from scipy.sparse import csr_array

    matrix = csr_array(np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]]))
    why = Recommender("ltocf", epochs=1, dim=4).fit(matrix).explain(2, 0)
    assert why.because.is_empty()
    assert why.score == why.own


def why_of(score: float, item: str = "z") -> Explanation:
    because = pl.DataFrame({"item": ["a", "b", "c"], "contribution": [2.0, 1.0, -0.5]})
    return Explanation("ann", item, score, score - 2.5, because, names=["Alien", "b", "Casablanca"])


def test_the_sentence_names_what_speaks_for_the_item():
    assert why_of(3).sentence() == "because of Alien and b"
    assert why_of(3).sentence(1) == "because of Alien"


def test_an_item_does_not_explain_itself():
    assert why_of(3, item="a").sentence() == "because of b"


def test_a_score_that_is_not_positive_has_no_because():
    assert why_of(-1).sentence() == "not recommended: its score is not above 0"


@pytest.mark.parametrize("name", ["gfcf", "chebycf", "rp3beta"])
def test_reasons_take_the_memory_of_a_history_by_a_list(name):
    """Not of a history by all items, which is 0.2 GB here, nor of any for each item listed."""
    random, n_items = np.random.default_rng(0), 20_000
    users = np.concatenate([np.zeros(3000, int), random.integers(1, 400, 20_000)])
    items = np.concatenate([np.arange(3000), random.integers(0, n_items, 20_000)])
    log = pl.DataFrame({"user": users, "item": items}).unique(maintain_order=True)
    settings = {"rank": 4} if name != "rp3beta" else {}
    fitted = Recommender(name, **settings).fit(log).fitted
    scorer, history = fitted.scorer, histories_of(fitted.train)[[0]]
    listed = np.arange(10, dtype=np.int32)
    scorer.explain(listed, history, 0)  # what is made once, such as a transpose
    tracemalloc.start()
    terms = scorer.explain(listed, history, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert terms.of_history.shape == (history.nnz, 10)
    assert peak < 20e6

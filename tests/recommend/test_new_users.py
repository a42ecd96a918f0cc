"""People who were not there in training, by what they have."""

import numpy as np
import polars as pl
import pytest
import torch

from ltocf.errors import ConfigError, DataError
from ltocf.models import MODELS
from ltocf.recommend.new_users import STEP, new_vectors, own_vector
from ltocf.recommend.recommender import Recommender
from ltocf.scorers.scorer import Vectors
from tests.histories import history_matrix
from tests.models.toys import used_by

PAIRS = [(f"u{c}{u}", f"i{c}{i}") for c in "ab" for u in range(6) for i in range(6) if u != i]
LOG = pl.DataFrame(PAIRS, schema=["user", "item"], orient="row")
BY_HISTORY = [
    "ltocf",
    "lightgcn",
    "gfcf",
    "bspm",
    "chebycf",
    "turbocf",
    "ease",
    "sparse_ease",
    "rp3beta",
]

EYE = np.eye(8, dtype=np.float32)
VECTORS = Vectors(EYE, EYE, None)


NETWORKS = ("neumf", "cmn", "gcmc", "pinsage", "multvae")  # they want width and patience


def fit(name: str) -> Recommender:
    fields, deep = MODELS[name].Config.model_fields, name in NETWORKS
    small = {key: 16 if deep else 4 for key in ("dim", "rank") if key in fields}
    pace = {"epochs": 60, "learning_rate": 0.01} if deep else {"epochs": 30, "learning_rate": 0.05}
    return Recommender(name, **used_by(name, negatives=4, **pace), **small).fit(LOG)


@pytest.fixture(scope="module")
def ltocf() -> Recommender:
    return fit("ltocf")


@pytest.mark.parametrize("name", BY_HISTORY)
def test_a_newcomer_gets_the_rest_of_their_community(name):
    found = fit(name).recommend_new(["ib1", "ib4", "ib5"], 3)
    assert sorted(found["item"]) == ["ib0", "ib2", "ib3"]
    assert found.columns == ["rank", "item", "score", "source"]


def test_many_newcomers_are_answered_as_each_alone(ltocf):
    people = {"first": ["ia0", "ia1"], "second": ["ib2"], "third": []}
    found = ltocf.recommend_new(people, 2)
    assert found["user"].to_list() == ["first", "first", "second", "second", "third", "third"]
    for name, history in people.items():
        alone = ltocf.recommend_new(history, 2)
        together = found.filter(pl.col("user") == name).drop("user")
        assert together["item"].to_list() == alone["item"].to_list()
        np.testing.assert_allclose(together["score"], alone["score"], rtol=1e-5)


def test_without_a_history_there_is_popularity_marked_as_such(ltocf):
    extra = pl.DataFrame({"user": ["ua0", "ub0"], "item": ["ib3", "ib0"]})
    recommender = Recommender("mf", epochs=1).fit(pl.concat([LOG, extra]))
    found = recommender.recommend_new([], 2)
    assert found["source"].unique().to_list() == ["popularity"]
    assert found["item"].to_list()[:2] == ["ib0", "ib3"]
    assert found["score"].to_list() == [6, 6]


def test_unknown_items_of_a_history_are_passed_over_unless_strict(ltocf):
    history = ["ib1", "a tuba", "ib4"]
    assert ltocf.recommend_new(history, 3).equals(ltocf.recommend_new(["ib1", "ib4"], 3))
    assert ltocf.unknown_items(history) == ["a tuba"]
    with pytest.raises(DataError, match="unknown item 'a tuba'"):
        ltocf.recommend_new(history, 3, strict=True)
    with pytest.raises(DataError, match="none of the 2 items is in the training data"):
        ltocf.recommend_new(["a tuba", "a lute"])


def test_one_unknown_history_does_not_fail_the_others(ltocf):
    people = {"first": ["ia0"], "stranger": ["a tuba"]}
    found = ltocf.recommend_new(people, 2)
    assert found["source"].to_list() == ["model"] * 2 + ["popularity"] * 2
    with pytest.raises(DataError, match="history of 'stranger' has the unknown item 'a tuba'"):
        ltocf.recommend_new(people, 2, strict=True)


def test_a_repeated_item_counts_once(ltocf):
    once, twice = ltocf.recommend_new(["ib1"], 3), ltocf.recommend_new(["ib1", "ib1"], 3)
    assert once.equals(twice)


def test_the_history_is_left_out_unless_kept_and_candidates_hold(ltocf):
    assert ltocf.recommend_new(["ib1"], 12)["item"].len() == 11
    assert "ib1" in ltocf.recommend_new(["ib1"], 12, keep_seen=True)["item"].to_list()
    chosen = ltocf.recommend_new(["ib1"], 3, candidates=["ia0", "ib0"], exclude=["ia0"])
    assert chosen["item"].to_list() == ["ib0"]


def test_somebody_who_has_everything_gets_nothing(ltocf):
    assert ltocf.recommend_new(LOG["item"].unique().to_list(), 3).is_empty()
    assert ltocf.recommend_new(LOG["item"].unique().to_list(), 3, gradient_steps=2).is_empty()


def test_a_model_of_user_vectors_alone_asks_for_steps():
    recommender = fit("mf")
    with pytest.raises(ConfigError, match="vector for each user of its training data"):
        recommender.recommend_new(["ib1", "ib4"], 3)
    found = recommender.recommend_new(["ib1", "ib4", "ib5"], 3, gradient_steps=50)
    assert sorted(found["item"]) == ["ib0", "ib2", "ib3"]


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("popularity", "random")])
def test_every_model_knows_newcomers_by_history_or_by_steps_or_says_that_it_does_not(name):
    recommender, history = fit(name), ["ib1", "ib4", "ib5"]
    refusals = []
    for steps in (0, 50):
        try:
            found = recommender.recommend_new(history, 3, gradient_steps=steps)
        except ConfigError as error:
            refusals.append(str(error))
        else:
            assert sorted(found["item"]) == ["ib0", "ib2", "ib3"], steps
    assert len(refusals) < 2 or name in ("neumf", "cmn")
    assert all("this model has" in refusal for refusal in refusals)


def test_steps_do_not_go_with_a_closed_form():
    with pytest.raises(ConfigError, match="has no vector for a user, so gradient_steps must be 0"):
        fit("gfcf").recommend_new(["ib1"], 3, gradient_steps=1)


def test_a_gradient_step_raises_the_history_and_lowers_the_rest_by_one_step_of_adam():
    history, drawing = np.array([2, 5], dtype=np.int32), np.random.default_rng(0)
    own = own_vector(VECTORS, EYE[0] * 0, history, steps=1, generator=drawing)
    # With a coordinate an item, the gradient of BPR has a sign an item, and Adam follows the sign.
    signs = np.where(np.isin(np.arange(8), history), 1, -1)
    np.testing.assert_allclose(own, STEP * 8**-0.5 * signs, rtol=1e-4)


def test_more_gradient_steps_raise_the_history_further():
    history, start = np.array([2, 5], dtype=np.int32), EYE[0] * 0
    margins = []
    for steps in (0, 1, 20):
        generator = np.random.default_rng(0)
        own = own_vector(VECTORS, start, history, steps=steps, generator=generator)
        margins.append(float(own[[2, 5]].mean() - own.mean()))
    assert margins[0] == 0
    assert margins[0] < margins[1] < margins[2]


def test_without_steps_a_new_vector_is_the_weighted_sum_of_the_history(ltocf):
    items = ltocf.fitted.seen.item_ids
    history = history_matrix([items.find(["ia0", "ib3"])], len(items))
    new = new_vectors(ltocf.scorer, history, steps=0)
    np.testing.assert_array_equal(new, ltocf.scorer.fold_in(history))


def test_a_known_user_without_own_vector_is_scored_as_a_newcomer_with_that_history(ltocf):
    with torch.no_grad():
        kept = ltocf.model.weight.clone()
        ltocf.model.weight[: ltocf.model.graph.n_users] = 0
    scorer = ltocf.model.scorer()
    train = ltocf.model.graph.interactions
    users = np.arange(train.n_users, dtype=np.int32)
    matrix = history_matrix([train.items_of(user) for user in users], train.n_items)
    new = scorer.from_history(matrix)
    np.testing.assert_allclose(scorer(users), new, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        ltocf.model.weight.copy_(kept)

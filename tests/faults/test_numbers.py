"""Extreme numbers: right or refused in one line, and never a NaN in a list."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from ltocf.data.ingest.read_log import read_log
from ltocf.errors import LtocfError
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from ltocf.runs.settings import make_config

pytestmark = pytest.mark.slow

SETTINGS = {"epochs": 2, "negatives": 2, "dim": 4, "batch_size": 8}


def dense(*rows: list[int]) -> sparse.csr_array:
    return sparse.csr_array(np.array(rows))


def disconnected() -> sparse.csr_array:
    """Two halves that share nothing, and an item and a user with nothing at all."""
    matrix = np.zeros((7, 7), int)
    matrix[:3, :3] = matrix[3:6, 3:6] = 1
    matrix[0, 0] = matrix[3, 3] = 0
    return sparse.csr_array(matrix)


GRAPHS = {
    "one pair": dense([1]),
    "one user": dense([1, 1, 0, 1]),
    "one item": dense([1], [1], [0], [1]),
    "a user with everything": dense([1, 1, 1], [1, 0, 0], [0, 1, 0]),
    "an item with everybody": dense([1, 0, 1], [1, 1, 0], [1, 0, 0]),
    "everybody has everything": dense([1, 1], [1, 1]),
    "disconnected": disconnected(),
}


def fitted(name: str, graph: sparse.csr_array, **settings: object) -> Recommender:
    known = make_config({"model": {"name": name}})
    fields = MODELS[name].Config.model_fields
    wanted = {key: value for key, value in (SETTINGS | settings).items() if key != "dim"}
    if "dim" in fields:
        wanted["dim"] = (SETTINGS | settings)["dim"]
    if name == "multvae":  # whose loss has no negatives
        del wanted["negatives"]
    if MODELS[name].solved():
        wanted = {key: value for key, value in wanted.items() if key in fields}
    assert known.model_name == name
    return Recommender(name, **wanted).fit(graph)


def check_lists(recommender: Recommender, graph: sparse.csr_array) -> None:
    """Finite scores, no item twice, nothing that the user has, and for anybody something."""
    users = list(range(graph.shape[0]))
    lists = recommender.recommend(users, 1)
    assert lists["score"].is_finite().all()
    rows = graph.toarray()
    for user, item in lists.select("user", "item").rows():
        assert not rows[user, item]
    new = recommender.recommend(users, 1, keep_seen=True)
    assert new["score"].is_finite().all()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "blend"])
def test_every_model_takes_the_smallest_and_the_oddest_graphs(name, graph):
    try:
        recommender = fitted(name, GRAPHS[graph])
    except LtocfError as error:
        assert "\n" not in str(error)
        assert "means nothing" not in str(error), "a setting that the test should not give"
        return
    check_lists(recommender, GRAPHS[graph])


@pytest.mark.parametrize(
    "name", [name for name in MODELS if "dim" in MODELS[name].Config.model_fields]
)
def test_one_dimension_is_enough_to_rank(name):
    check_lists(fitted(name, GRAPHS["disconnected"], dim=1), GRAPHS["disconnected"])


@pytest.mark.parametrize("name", ["ltocf", "lightgcn", "mf", "neumf", "multvae", "ngcf"])
@pytest.mark.parametrize("rate", [1e3, 1e30])
def test_an_absurd_learning_rate_gives_numbers_or_a_line_about_it(name, rate):
    try:
        recommender = fitted(name, GRAPHS["disconnected"], learning_rate=rate, epochs=5)
    except LtocfError as error:
        assert "learning_rate" in str(error)
        return
    check_lists(recommender, GRAPHS["disconnected"])


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1"])
def test_a_learning_rate_that_is_no_rate_is_refused(value):
    with pytest.raises(LtocfError, match="learning_rate"):
        make_config({}, [f"learning_rate={value}"])


def test_ten_million_items_and_one_interaction():
    matrix = sparse.csr_array(([1], ([0], [9_999_999])), shape=(1, 10_000_000))
    recommender = Recommender("popularity").fit(matrix)
    found = recommender.recommend([0], 3)
    assert found["item"].to_list() == [0, 1, 2]
    with pytest.raises(LtocfError, match="GB"):
        Recommender("ltocf", dim=10**6).fit(matrix)


def test_ids_beyond_64_bits_stay_apart_and_are_found():
    large = [2**63, 2**64 - 1, 10**30]
    frame = pl.DataFrame({"user": [str(n) for n in large], "item": ["x", "y", "x"]})
    recommender = Recommender("popularity").fit(frame)
    assert recommender.recommend([2**64 - 1], 1)["item"].to_list() == ["x"]
    assert recommender.recommend([str(10**30)], 1)["item"].to_list() == ["y"]
    assert read_log(frame).interactions.n_users == 3

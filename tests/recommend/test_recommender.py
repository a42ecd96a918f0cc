"""Recommender: any log in, the caller's ids out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix

from ltocf.data.dataset import Dataset
from ltocf.errors import ConfigError, DataError, RunError
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from tests.models.toys import used_by

QUICK = {"epochs": 30, "dim": 4, "negatives": 4, "learning_rate": 0.05}
NETWORKS = ("neumf", "cmn", "gcmc", "pinsage", "multvae")  # they want width and patience
FLOORS = ("popularity", "random")  # they know nothing of who you are


@pytest.fixture(scope="module")
def communities() -> pl.DataFrame:
    """Ann..Eve read books but for one each, Fay..Joy play games but for one each."""
    people = [["ann", "bob", "cat", "dan", "eve"], ["fay", "gus", "hal", "ida", "joy"]]
    things = [[f"book {n}" for n in range(5)], [f"game {n}" for n in range(5)]]
    pairs = [
        (person, thing)
        for group, owned in zip(people, things, strict=True)
        for p, person in enumerate(group)
        for t, thing in enumerate(owned)
        if p != t
    ]
    return pl.DataFrame(pairs, schema=["user", "item"], orient="row")


@pytest.fixture(scope="module")
def fitted(communities) -> Recommender:
    return Recommender("ltocf", **QUICK).fit(communities)


@pytest.fixture(scope="module")
def town(hamlet) -> Recommender:
    return Recommender("ltocf", epochs=2, dim=8, negatives=4).fit(hamlet)


def closed_form_settings(name: str) -> dict[str, int]:
    return {"rank": 4} if "rank" in MODELS[name].Config.model_fields else {}


def settings_of(name: str) -> dict[str, float]:
    fields = MODELS[name].Config.model_fields
    quick = QUICK | ({"learning_rate": 0.01, "dim": 32} if name in NETWORKS else {})
    known = {key: quick[key] for key in quick if key != "dim" or "dim" in fields}
    return used_by(name, **known) | closed_form_settings(name)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in FLOORS])
def test_every_model_recommends_what_was_withheld(name, communities):
    found = Recommender(name, **settings_of(name)).fit(communities).recommend("bob", 1)
    assert found["item"].to_list() == ["book 1"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_survives_save_and_load(name, communities, tmp_path):
    before = Recommender(name, **settings_of(name) | used_by(name, epochs=1)).fit(communities)
    before.save(tmp_path / "run")
    after = Recommender.load(tmp_path / "run")
    everybody = communities["user"].unique(maintain_order=True)
    assert after.recommend(everybody, 5).equals(before.recommend(everybody, 5))
    assert after.config.model == before.config.model


def test_a_log_is_the_same_in_every_form(communities, fitted, tmp_path):
    communities.write_csv(tmp_path / "log.csv")
    communities.write_parquet(tmp_path / "log.parquet")
    renamed = communities.rename({"user": "reader", "item": "what"})
    forms = [
        ({}, communities.lazy()),
        ({}, pd.DataFrame(communities.to_dict(as_series=False))),
        ({}, tmp_path / "log.csv"),
        ({}, str(tmp_path / "log.parquet")),
        ({"user": "reader", "item": "what"}, renamed),
    ]
    expected = fitted.recommend("fay", 3)
    for columns, log in forms:
        found = Recommender("ltocf", **QUICK).fit(log, **columns).recommend("fay", 3)
        assert found.equals(expected), type(log)


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_array])
def test_a_sparse_matrix_has_numbers_for_ids(kind, communities, fitted):
    users, items = (
        communities[side].cast(pl.Enum(communities[side].unique().sort())).to_physical().to_numpy()
        for side in ("user", "item")
    )
    matrix = kind((np.full(len(users), 2.5), (users, items)), shape=(10, 10))
    found = Recommender("ltocf", **QUICK).fit(matrix).recommend(5, 3)
    expected = fitted.recommend("fay", 3)
    assert found["user"].to_list() == [5, 5, 5]
    assert found["item"].to_list() == [5, *found["item"][1:]]
    np.testing.assert_array_equal(found["score"], expected["score"])


def test_zeros_of_a_matrix_are_no_interactions():
    dense = np.array([[1.0, 0, 1], [0, 1, 1]])
    matrix = csr_array(dense)
    matrix.data[0] = 0
    recommender = Recommender("popularity").fit(matrix)
    assert recommender.recommend(0, 3)["item"].to_list() == [1, 0]


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (csr_array((3, 4)), "holds no interaction"),
        (csr_array(np.array([[1.0, np.nan]])), "not finite"),
        (42, "cannot read a log from 'int'"),
        ("no/such/file.csv", "no/such/file.csv: no such file"),
        (pl.DataFrame({"user": [1], "thing": [2]}), "cannot guess the item column"),
    ],
)
def test_what_cannot_be_read_as_a_log_is_refused_in_one_line(log, message):
    with pytest.raises(DataError, match=message) as caught:
        Recommender("popularity").fit(log)
    assert "\n" not in str(caught.value)


def test_column_names_do_not_go_with_a_matrix():
    with pytest.raises(ConfigError, match="user= goes with a file or a data frame"):
        Recommender("popularity").fit(csr_array(np.eye(3)), user="who")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "ltofc"}, "unknown model 'ltofc'; choose one of: ltocf"),
        ({"dimension": 8}, "unknown key 'dimension'"),
        ({"epochs": -1}, "epochs = -1"),
    ],
)
def test_settings_are_checked_when_they_are_given(settings, message):
    with pytest.raises(ConfigError, match=message):
        Recommender(**settings)


@pytest.mark.parametrize("users", [None, 1.5])
def test_what_is_no_id_is_refused(fitted, users):
    with pytest.raises(DataError, match="an id is a text or a whole number, got"):
        fitted.recommend(users)


def test_asking_before_fitting_says_what_to_do():
    with pytest.raises(ConfigError, match=r"call fit\(log\) first"):
        Recommender().recommend("ann")


def test_what_a_user_has_is_left_out_unless_kept(fitted):
    assert "book 0" not in fitted.recommend("bob", 10)["item"].to_list()
    kept = fitted.recommend("bob", 10, keep_seen=True)
    assert kept.height == 10
    assert kept["score"].is_sorted(descending=True)


def test_candidates_and_excluded_items(fitted):
    among = fitted.recommend("bob", 5, candidates=["game 1", "game 2", "book 0", "unheard of"])
    assert set(among["item"]) == {"game 1", "game 2"}
    without = fitted.recommend("bob", 5, exclude=["book 1", "never sold"])
    assert "book 1" not in without["item"].to_list()
    assert fitted.recommend("bob", 5, exclude="book 1").equals(without)
    with pytest.raises(DataError, match="none of the 2 candidates is in the training data"):
        fitted.recommend("bob", 5, candidates=["x", "y"])


def test_unknown_users_among_known_ones_are_left_out_and_listed(fitted):
    asked = ["bob", "nobody", "fay", "nobody else"]
    found = fitted.recommend(asked, 2)
    assert found["user"].to_list() == ["bob", "bob", "fay", "fay"]
    assert fitted.unknown_users(asked) == ["nobody", "nobody else"]


def test_strict_refuses_any_unknown_user(fitted):
    with pytest.raises(DataError, match="unknown user 'nobody' and 1 more"):
        fitted.recommend(["bob", "nobody", "nobody else"], strict=True)


def test_asking_for_unknown_users_only_is_an_error(fitted):
    with pytest.raises(DataError, match="unknown user 'nobody'"):
        fitted.recommend("nobody")
    with pytest.raises(DataError, match="none of the 2 users"):
        fitted.recommend(["nobody", "nobody else"])


@pytest.mark.parametrize("k", [0, -1, 2.5, "5"])
def test_a_k_that_is_no_count_is_refused(fitted, k):
    asked = {
        "users": lambda: fitted.recommend("ann", k),
        "history": lambda: fitted.recommend_new(["book 1"], k),
        "items": lambda: fitted.similar_items("book 1", k),
        "alike": lambda: fitted.similar_users("ann", k),
    }
    for ask in asked.values():
        with pytest.raises(ConfigError, match=f"k = {k!r}: must be a whole number of at least 1"):
            ask()


def test_a_k_beyond_the_catalogue_gives_what_there_is(fitted):
    assert fitted.recommend("ann", 11)["rank"].to_list() == [1, 2, 3, 4, 5, 6]
    assert fitted.recommend_new(["book 1"], 10**12).height == 9
    assert fitted.similar_items("book 1", 11).height == 9
    assert fitted.similar_users("ann", np.int64(11)).height == 9
    assert fitted.recommend("ann", np.int64(2)).height == 2


def test_a_user_who_has_everything_gets_an_empty_list(communities):
    everything = pl.DataFrame({"user": "max", "item": communities["item"].unique()})
    log = pl.concat([communities, everything])
    recommender = Recommender("ltocf", **QUICK | {"epochs": 2}).fit(log)
    assert recommender.recommend("max", 3).is_empty()
    assert recommender.recommend(["max", "bob"], 1)["user"].to_list() == ["bob"]
    assert recommender.recommend("max", 3, keep_seen=True).height == 3


@pytest.mark.parametrize("name", ["ltocf", "mf", "gfcf", "popularity"])
@pytest.mark.parametrize(
    "pairs",
    [{"user": ["a", "a"], "item": ["x", "y"]}, {"user": ["a", "b"], "item": ["x", "x"]}],
    ids=["one user", "one item"],
)
def test_one_user_or_one_item_is_enough(name, pairs):
    settings = {"rank": 1} if name == "gfcf" else {}
    recommender = Recommender(name, **used_by(name, epochs=2), **settings).fit(pl.DataFrame(pairs))
    assert recommender.recommend("a", 1).is_empty()
    assert recommender.recommend("a", 1, keep_seen=True).height == 1


def test_integer_ids_are_found_as_text_and_stay_integers():
    log = pl.DataFrame({"user": [7, 7, 42], "item": [100, 200, 100]})
    recommender = Recommender("popularity").fit(log)
    assert recommender.recommend("42", 1).to_dicts()[0] | {"score": 0} == {
        "user": 42,
        "rank": 1,
        "item": 200,
        "score": 0,
        "source": "model",
    }
    assert recommender.recommend(np.array([42, 7]), 2).height == 1


def test_somebody_known_without_a_history_gets_what_is_popular():
    matrix = csr_array(np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 0]]))
    found = Recommender("ltocf", epochs=1, dim=4).fit(matrix).recommend([3, 1], 2)
    assert found["source"].to_list() == ["popularity", "popularity", "model"]
    assert found["item"].to_list() == [0, 1, 1]
    assert found["score"].to_list()[:2] == [3.0, 2.0]


def test_display_columns_follow_the_items(town, hamlet):
    found = town.recommend(hamlet.split.train.user_ids.ids[0], 3)
    assert found.columns == [
        "user", "rank", "item", "score", "source", "name", "kind", "neighbourhood",
    ]  # fmt: skip
    rows = hamlet.split.train.item_ids.find(found["item"])
    assert found["name"].to_list() == hamlet.item_names[rows]["name"].to_list()


def test_a_display_column_may_be_called_as_ours_are(hamlet, town):
    names = hamlet.item_names.rename({"kind": "score"})
    other = Recommender.wrap(town.model, Dataset("renamed", town.dataset.split, names), town.config)
    found = other.recommend(hamlet.split.train.user_ids.ids[0], 3)
    assert found["item_score"].dtype == pl.String
    assert found["score"].dtype == pl.Float32


def test_a_prepared_data_set_keeps_its_test_pairs_out(town, hamlet):
    assert len(town.model.graph.interactions) == len(hamlet.split.train)
    assert 0 < town.evaluate([20])["recall@20"] < 1


def test_validation_is_cut_off_on_request(hamlet):
    recommender = Recommender("mf", epochs=1, dim=4, protocol="validation").fit(hamlet)
    assert len(recommender.dataset.split.valid) > 0


def test_saving_into_a_full_directory_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    with pytest.raises(RunError, match="already exists"):
        fitted.save(tmp_path / "run")
    fitted.save(tmp_path / "run", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", [name for name in MODELS if name not in FLOORS])
def test_similar_items_are_of_the_same_kind(name, communities):
    recommender = Recommender(name, **settings_of(name)).fit(communities)
    found = recommender.similar_items("book 2", 2)
    assert all(item.startswith("book") for item in found["similar"])
    assert "book 2" not in found["similar"].to_list()
    assert found["rank"].to_list() == [1, 2]


@pytest.mark.parametrize("name", ["ltocf", "mf", "gfcf", "ease"])
def test_similar_users_are_of_the_same_community(name, communities):
    recommender = Recommender(name, **settings_of(name)).fit(communities)
    found = recommender.similar_users(["bob", "ida"], 3)
    assert set(found.filter(pl.col("user") == "bob")["similar"]) < {"ann", "cat", "dan", "eve"}
    assert set(found.filter(pl.col("user") == "ida")["similar"]) < {"fay", "gus", "hal", "joy"}


def test_similarity_of_vectors_is_their_cosine(town, hamlet):
    item = hamlet.split.train.item_ids.ids[3]
    best = town.similar_items(item, 1)
    vectors = town.scorer.items
    a, b = vectors[3], vectors[hamlet.split.train.item_ids.find(best["similar"])[0]]
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert best["score"][0] == pytest.approx(cosine, abs=1e-6)


def test_an_unknown_item_has_nothing_similar(fitted):
    with pytest.raises(DataError, match="unknown item 'tuba'"):
        fitted.similar_items("tuba")


def test_a_table_of_items_says_what_to_display(communities):
    names = pd.DataFrame({"item": ["book 1", "book 2"], "title": ["Emma", "Ivanhoe"]})
    recommender = Recommender("ease").fit(communities, items=names)
    found = recommender.recommend("bob", 1)
    assert found.select("item", "title").rows() == [("book 1", "Emma")]


def test_progress_is_shown_on_request(communities, capsys):
    Recommender("ltocf", epochs=2, dim=4).fit(communities)
    assert capsys.readouterr().err == ""
    Recommender("ltocf", epochs=2, dim=4).fit(communities, progress=True)
    assert "training 2/2" in capsys.readouterr().err


def test_results_become_pandas_in_one_call(fitted):
    table = fitted.recommend(["ann", "bob"], 2).to_pandas()
    assert isinstance(table, pd.DataFrame)
    assert table.groupby("user").size().to_dict() == {"ann": 2, "bob": 2}


def test_parameters_are_kept_as_scikit_learn_wants_them(communities):
    from sklearn.base import clone

    parts = [{"model": "ease", "weight": 1.0, "options": {"l2": 3.0}}]
    recommender = Recommender("blend", seed=3, members=parts)
    copied = clone(recommender, safe=False)
    assert copied.get_params() == {"model": "blend", "seed": 3, "members": parts}
    changed = Recommender("ltocf", dim=8).fit(communities).set_params(dim=4, epochs=2)
    assert (changed.config.model["dim"], changed.config.train.epochs) == (4, 2)
    with pytest.raises(ConfigError, match="call fit"):
        changed.recommend("ann")
    with pytest.raises(ConfigError, match="unknown key 'dimm'"):
        changed.set_params(dimm=4)


def test_a_loaded_recommender_knows_what_it_was_made_with(tmp_path, communities):
    made = Recommender("ltocf", seed=5, dim=4, epochs=2, negatives=3).fit(communities)
    made.save(tmp_path / "run")
    loaded = Recommender.load(tmp_path / "run")
    again = Recommender(**loaded.get_params())
    for section in ("model", "loss", "train", "seed"):
        assert getattr(again.config, section) == getattr(made.config, section)

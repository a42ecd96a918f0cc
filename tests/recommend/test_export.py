"""Each exported format is read back by its own reader and checked against the model."""

import json

import hnswlib
import numpy as np
import onnxruntime
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from ltocf.data.interactions import Interactions
from ltocf.errors import ConfigError, DataError
from ltocf.recommend import onnx_scoring
from ltocf.recommend.export import export
from ltocf.recommend.recommender import Recommender
from tests.histories import history_matrix

FINISHED = ("lists", "neighbours")


def seen_of(recommender: Recommender) -> Interactions:
    return recommender.fitted.seen


@pytest.fixture(scope="module")
def town(hamlet) -> Recommender:
    return Recommender("ltocf", epochs=2, dim=8, negatives=4).fit(hamlet)


@pytest.fixture(scope="module")
def exported(town, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "out"
    export(town, path, ["parquet", "hnsw", "onnx"])
    return path


def test_embeddings_read_back_with_ids_and_names(town, exported, hamlet):
    users, items = (pl.read_parquet(exported / f"{side}.parquet") for side in ("users", "items"))
    of_users, of_items = town.scorer.vectors().with_bias()
    np.testing.assert_array_equal(users["vector"].to_numpy(), of_users)
    np.testing.assert_array_equal(items["vector"].to_numpy(), of_items)
    assert users["id"].to_list() == hamlet.split.train.user_ids.ids.to_list()
    assert items["name"].to_list() == hamlet.item_names["name"].to_list()


def test_the_exported_vectors_alone_give_the_recommendations(town, exported):
    users, items = (pl.read_parquet(exported / f"{side}.parquet") for side in ("users", "items"))
    best = town.recommend(users["id"][4], 1, keep_seen=True)
    scores = items["vector"].to_numpy() @ users["vector"].to_numpy()[4]
    assert items["id"][int(scores.argmax())] == best["item"][0]


def test_the_index_reads_back_and_its_recall_is_measured(town, exported):
    of_users, of_items = town.scorer.vectors().with_bias()
    index = hnswlib.Index(space="ip", dim=of_items.shape[1])
    index.load_index(str(exported / "items.hnsw"))
    index.set_ef(90)
    items = pl.read_parquet(exported / "items.parquet")["id"]
    labels, _ = index.knn_query(of_users[:5], 3)
    users = town.fitted.seen.user_ids.ids.head(5).to_list()
    exact = town.recommend(users, 3, keep_seen=True)["item"].to_list()
    assert items.gather(labels.ravel().astype(np.int64)).to_list() == exact
    report = json.loads((exported / "export.json").read_text())["hnsw"]
    assert (report["k"], report["users_measured"]) == (20, 120)
    assert report["recall"] > 0.95


def test_onnx_scores_users_as_the_model_does(town, exported):
    session = onnxruntime.InferenceSession(exported / "users.onnx")
    rows = np.array([3, 0, 119])
    (scores,) = session.run(None, {"users": rows})
    expected = town.scorer(rows.astype(np.int32))
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_the_metadata_of_onnx_tie_rows_and_columns_to_ids(town, exported):
    meta = onnxruntime.InferenceSession(exported / "users.onnx").get_modelmeta()
    ids = {key: json.loads(text) for key, text in meta.custom_metadata_map.items()}
    assert ids["user_ids"] == town.fitted.seen.user_ids.ids.to_list()
    assert ids["item_ids"] == town.fitted.seen.item_ids.ids.to_list()
    meta = onnxruntime.InferenceSession(exported / "histories.onnx").get_modelmeta()
    assert json.loads(meta.custom_metadata_map["item_ids"]) == ids["item_ids"]


def test_onnx_scores_histories_as_the_model_does(town, exported):
    session = onnxruntime.InferenceSession(exported / "histories.onnx")
    histories = history_matrix([np.array([1, 5, 8]), np.array([], int), np.array([0])], 90)
    (scores,) = session.run(None, {"histories": (histories.toarray() > 0).astype(np.float32)})
    expected = town.scorer.from_history(histories)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_onnx_scores_weigh_the_latest_items_as_the_model_does(hamlet, tmp_path):
    recent = Recommender("lightgcn", epochs=1, dim=8, recency=0.9).fit(hamlet)
    export(recent, tmp_path / "out", ["onnx"])
    session = onnxruntime.InferenceSession(tmp_path / "out" / "histories.onnx")
    histories = history_matrix([np.array([8, 1, 5]), np.array([], int), np.array([0])], 90)
    expected = recent.scorer.from_history(histories)
    (scores,) = session.run(None, {"histories": histories.toarray()})
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7)
    (unordered,) = session.run(None, {"histories": np.sign(histories.toarray())})
    assert not np.allclose(unordered, expected, rtol=1e-2, atol=1e-7)


def test_a_model_without_fold_in_has_no_graph_for_histories(hamlet, tmp_path):
    report = export(Recommender("mf", epochs=1, dim=4).fit(hamlet), tmp_path / "out", ["onnx"])
    assert report["onnx"] == {"graphs": ["users"]}
    assert not (tmp_path / "out" / "histories.onnx").exists()


@pytest.fixture(scope="module")
def blend(hamlet) -> Recommender:
    members = [
        {"model": "ease", "weight": 1.0},
        {"model": "ltocf", "weight": 0.5, "options": {"dim": 8}},
        {"model": "gfcf", "weight": 0.25, "options": {"rank": 4}},
    ]
    return Recommender("blend", epochs=1, members=members).fit(hamlet)


def test_a_blends_lists_and_neighbours_are_its_answers(blend, tmp_path):
    report = export(blend, tmp_path / "out", ["lists", "neighbours"], k=4)
    users, items = (ids.ids.to_list() for ids in (seen_of(blend).user_ids, seen_of(blend).item_ids))
    read = {name: pl.read_parquet(tmp_path / "out" / f"{name}.parquet") for name in FINISHED}
    assert_frame_equal(read["lists"], blend.recommend(users, 4))
    assert_frame_equal(read["neighbours"], blend.similar_items(items, 4))
    assert report["lists"] == {"users": 120, "rows": 480}
    assert report["neighbours"] == {"items": 90, "rows": 360}
    kept = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert kept == ["digests.json", "export.json", "lists.parquet", "neighbours.parquet"]


LINEAR = {
    "ease": {"recency": 0.5},
    "gfcf": {"rank": 4},
    "turbocf": {},
    "rp3beta": {},
    "transitions": {},
    "popularity": {},
}


def scores_by_onnx(recommender: Recommender, directory) -> tuple[np.ndarray, np.ndarray]:
    export(recommender, directory, ["onnx"])
    scoring = onnxruntime.InferenceSession(directory / "histories.onnx")
    histories = history_matrix([np.array([8, 1, 5]), np.array([0]), np.array([30, 2])], 90)
    (scores,) = scoring.run(None, {"histories": histories.toarray()})
    return scores, recommender.scorer.from_history(histories)


@pytest.mark.parametrize("name", LINEAR)
def test_onnx_scores_histories_as_a_closed_form_does(hamlet, tmp_path, name):
    recommender = Recommender(name, **LINEAR[name]).fit(hamlet)
    scores, expected = scores_by_onnx(recommender, tmp_path / "out")
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_onnx_scores_histories_as_a_blend_does(blend, tmp_path):
    scores, expected = scores_by_onnx(blend, tmp_path / "out")
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)
    assert not (tmp_path / "out" / "users.onnx").exists()


def test_onnx_of_what_is_no_product_or_too_large_is_refused(hamlet, blend, tmp_path, monkeypatch):
    network = Recommender("multvae", epochs=1).fit(hamlet)
    with pytest.raises(ConfigError, match=r"multvae cannot be written.*--format lists"):
        export(network, tmp_path / "out", ["onnx"])
    monkeypatch.setattr(onnx_scoring, "MOST_BYTES", 4 * 90 * 90 - 1)
    with pytest.raises(ConfigError, match=r"a table of 90 x 90 weights .*--format neighbours"):
        export(blend, tmp_path / "out", ["onnx"])
    assert not list(tmp_path.iterdir())


def test_lists_go_with_vectors_and_into_csv(town, tmp_path):
    export(town, tmp_path / "out", ["lists", "parquet"], k=2, csv=True)
    read = pl.read_csv(tmp_path / "out" / "lists.csv")
    users = seen_of(town).user_ids.ids.to_list()
    assert read["item"].to_list() == town.recommend(users, 2)["item"].to_list()
    assert (tmp_path / "out" / "items.parquet").exists()


@pytest.mark.parametrize("format", ["parquet", "hnsw"])
def test_a_model_without_vectors_says_what_can_be_exported(hamlet, tmp_path, format):
    message = "gfcf has no embeddings to export; .*--format lists.*--format neighbours"
    with pytest.raises(ConfigError, match=message):
        export(Recommender("gfcf", rank=4).fit(hamlet), tmp_path / "out", ["lists", format])
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_and_a_full_directory_are_refused(town, tmp_path):
    with pytest.raises(
        ConfigError, match="unknown format 'faiss'; choose one of: lists, neighbours, parquet"
    ):
        export(town, tmp_path / "out", ["faiss"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(DataError, match="already exists and was not written by ltocf"):
        export(town, tmp_path / "out")


def test_the_command_line_exports(town, ltocf, tmp_path):
    town.save(tmp_path / "run")
    arguments = ("export", tmp_path / "run", "-o", tmp_path / "out", "-f", "hnsw", "-f", "onnx")
    code, out, err = ltocf(*arguments)
    assert code == 0, err
    assert "of the exact top 20" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "digests.json", "export.json", "histories.onnx", "items.hnsw", "items.parquet",
        "users.onnx", "users.parquet",
    ]  # fmt: skip
    assert ltocf(*arguments)[0] == 2
    assert ltocf(*arguments, "--overwrite", "--json")[0] == 0


def test_the_command_line_exports_what_a_closed_form_has(ltocf, hamlet, tmp_path):
    Recommender("ease").fit(hamlet).save(tmp_path / "run")
    to = ("export", tmp_path / "run", "-o", tmp_path / "out")
    code, _, err = ltocf(*to)
    assert code == 2
    assert "--format lists" in err
    code, out, err = ltocf(*to, "-f", "lists", "-f", "neighbours", "-k", 3, "--csv")
    assert code == 0, err
    assert "360 rows for 120 users" in out
    assert "270 neighbours of 90 items" in out


@pytest.mark.parametrize("connection", ["linear", "residual"])
def test_states_add_up_to_the_final_vectors(hamlet, tmp_path, connection):
    """The first is where the ODE starts, and by their weights all of them are what is ranked by."""
    recommender = Recommender(
        "ltocf", epochs=1, dim=4, negatives=4, connection=connection, tolerance=1e-6, popularity=0
    ).fit(hamlet)
    report = export(recommender, tmp_path / "out", ["states", "parquet"])["states"]
    assert report["times"][0] == 0 and len(report["times"]) == 5
    for side in ("user", "item"):
        states = pl.read_parquet(tmp_path / "out" / f"{side}_states.parquet")
        final = pl.read_parquet(tmp_path / "out" / f"{side}s.parquet")
        assert states["id"].to_list() == final["id"].to_list()
        columns = [states[f"state_{place}"].to_numpy() for place in range(5)]
        summed = sum(w * column for w, column in zip(report["weights"], columns, strict=True))
        np.testing.assert_allclose(summed, final["vector"].to_numpy(), atol=1e-4)
    start = recommender.model.graph.split(recommender.model.weight.detach())[1].numpy()
    np.testing.assert_allclose(columns[0], start, atol=1e-6)


def test_states_are_refused_of_a_model_without_times(hamlet, tmp_path):
    recommender = Recommender("lightgcn", epochs=1, dim=4, negatives=4).fit(hamlet)
    with pytest.raises(ConfigError, match="LightGCN has no states over time; only ltocf has them"):
        export(recommender, tmp_path / "out", ["states"])
    assert not (tmp_path / "out").exists()

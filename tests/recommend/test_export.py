"""Each exported format is read back by its own reader and checked against the model."""

import json

import hnswlib
import numpy as np
import onnxruntime
import polars as pl
import pytest

from ltocf.errors import ConfigError, DataError
from ltocf.recommend.export import export
from ltocf.recommend.new_users import history_matrix
from ltocf.recommend.recommender import Recommender


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
    np.testing.assert_array_equal(users["vector"].to_numpy(), town.scorer.users.numpy())
    np.testing.assert_array_equal(items["vector"].to_numpy(), town.scorer.items.numpy())
    assert users["id"].to_list() == hamlet.split.train.user_ids.ids.to_list()
    assert items["name"].to_list() == hamlet.item_names["name"].to_list()


def test_the_exported_vectors_alone_give_the_recommendations(town, exported):
    users, items = (pl.read_parquet(exported / f"{side}.parquet") for side in ("users", "items"))
    best = town.recommend(users["id"][4], 1, keep_seen=True)
    scores = items["vector"].to_numpy() @ users["vector"].to_numpy()[4]
    assert items["id"][int(scores.argmax())] == best["item"][0]


def test_the_index_reads_back_and_its_recall_is_measured(town, exported):
    index = hnswlib.Index(space="ip", dim=8)
    index.load_index(str(exported / "items.hnsw"))
    index.set_ef(90)
    items = pl.read_parquet(exported / "items.parquet")["id"]
    labels, _ = index.knn_query(town.scorer.users[:5].numpy(), 3)
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
    expected = town.scorer(rows.astype(np.int32)).numpy()
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
    expected = town.scorer.from_history(histories).numpy()
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_onnx_knows_what_came_last(hamlet, tmp_path):
    recent = Recommender("lightgcn", epochs=1, dim=8, recency=0.9).fit(hamlet)
    export(recent, tmp_path / "out", ["onnx"])
    session = onnxruntime.InferenceSession(tmp_path / "out" / "histories.onnx")
    histories = history_matrix([np.array([8, 1, 5]), np.array([], int), np.array([0])], 90)
    expected = recent.scorer.from_history(histories).numpy()
    (scores,) = session.run(None, {"histories": histories.toarray()})
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7)
    (unordered,) = session.run(None, {"histories": np.sign(histories.toarray())})
    assert not np.allclose(unordered, expected, rtol=1e-2, atol=1e-7)


def test_a_model_without_fold_in_has_no_graph_for_histories(hamlet, tmp_path):
    report = export(Recommender("mf", epochs=1, dim=4).fit(hamlet), tmp_path / "out", ["onnx"])
    assert report["onnx"] == {"graphs": ["users"]}
    assert not (tmp_path / "out" / "histories.onnx").exists()


def test_a_closed_form_has_nothing_to_export(hamlet, tmp_path):
    with pytest.raises(ConfigError, match="gfcf has no embeddings to export"):
        export(Recommender("gfcf", rank=4).fit(hamlet), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_and_a_full_directory_are_refused(town, tmp_path):
    with pytest.raises(ConfigError, match="unknown format 'faiss'; choose one of: parquet, hnsw"):
        export(town, tmp_path / "out", ["faiss"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(DataError, match="is in the way"):
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

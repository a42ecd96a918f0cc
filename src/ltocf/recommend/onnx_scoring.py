"""Scoring as ONNX graphs, for programs without Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Id
from ltocf.errors import ConfigError
from ltocf.models.scorer import Vectors

OPSET, IR_VERSION = 17, 8  # of 2022, so that older runtimes read them too


def user_graph(vectors: Vectors, ids: Mapping[str, Sequence[Id]]) -> bytes:
    """users, int64 (n,) rows of the training data -> scores, float32 (n, n_items).

    `ids` go into the metadata as JSON, here and below: `user_ids` of the rows and `item_ids` of the
    columns of scores.
    """
    onnx = _onnx()
    make = onnx.helper.make_node
    nodes = [
        make("Gather", ["user_vectors", "users"], ["vectors"]),
        make("MatMul", ["vectors", "item_vectors"], ["scores"]),
    ]
    users = onnx.helper.make_tensor_value_info("users", onnx.TensorProto.INT64, ["n"])
    tensors = {"user_vectors": vectors.users.cpu().numpy(), "item_vectors": _columns(vectors)}
    return _serialise("score_users", nodes, users, tensors, ids)


def history_graph(
    vectors: Vectors,
    weights: HistoryWeights,
    item_strengths: NDArray[np.float64],
    ids: Mapping[str, Sequence[Id]],
) -> bytes:
    """histories, float32 (n, n_items) -> scores, float32 (n, n_items).

    An entry is 0 for what one has not, and 1 / (1 + how many came later), or 1, for the rest.
    """
    assert vectors.history is not None, "only models that know new users have this graph"
    onnx = _onnx()
    make = onnx.helper.make_node
    nodes = [
        make("Sign", ["histories"], ["has"]),
        make("ReduceSum", ["has", "axis"], ["degree"]),
        make("Sqrt", ["degree"], ["root"]),
        make("Pow", ["histories", "recency"], ["power"]),
        make("Mul", ["has", "power"], ["weights"]),  # the power 0 of nothing is 1
        make("ReduceSum", ["weights", "axis"], ["total"]),
        make("Max", ["total", "least"], ["divisor"]),
        make("Div", ["root", "divisor"], ["scale"]),  # degree / total / root of the degree
        make("MatMul", ["weights", "history_vectors"], ["sum"]),
        make("Mul", ["sum", "scale"], ["vectors"]),
        make("MatMul", ["vectors", "item_vectors"], ["scores"]),
    ]
    width = len(vectors.items)
    histories = onnx.helper.make_tensor_value_info(
        "histories", onnx.TensorProto.FLOAT, ["n", width]
    )
    degrees = np.where(item_strengths > 0, item_strengths, 1)[:, None]
    tensors = {
        "axis": np.array([1], np.int64),
        "recency": np.array([weights.recency], np.float32),
        "least": np.array([1e-30], np.float32),
        "history_vectors": (vectors.history.cpu().numpy() / np.sqrt(degrees)).astype(np.float32),
        "item_vectors": _columns(vectors),
    }
    return _serialise("score_histories", nodes, histories, tensors, ids)


def _columns(vectors: Vectors) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(vectors.items.cpu().numpy().T)


def _serialise(
    name: str,
    nodes: list[Any],
    given: Any,
    tensors: dict[str, Any],
    ids: Mapping[str, Sequence[Id]],
) -> bytes:
    onnx = _onnx()
    width = tensors["item_vectors"].shape[1]
    scores = onnx.helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["n", width])
    constants = [onnx.numpy_helper.from_array(value, key) for key, value in tensors.items()]
    graph = onnx.helper.make_graph(nodes, name, [given], [scores], constants)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    texts = {key: json.dumps(list(values), ensure_ascii=False) for key, values in ids.items()}
    onnx.helper.set_model_props(model, texts)
    onnx.checker.check_model(model)
    serialised: bytes = model.SerializeToString()
    return serialised


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ConfigError("the ONNX format needs onnx: pip install 'ltocf[onnx]'") from None
    return onnx

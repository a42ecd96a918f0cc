"""Scoring as ONNX graphs, for programs without Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ltocf.data.histories import HistoryWeights
from ltocf.data.interactions import Id
from ltocf.errors import ConfigError
from ltocf.machine.memory import require_memory
from ltocf.scorers.scorer import Formula, Scorer, Scores, Vectors

OPSET, IR_VERSION = 17, 8  # of 2022, so that older runtimes read them too
MOST_BYTES = 2**31 - 2**26  # of tables: the limit of Protocol Buffers minus room for the ids
COPIES = 4  # of the tables while they are written
INSTEAD = (
    "what every model has is everybody's lists (--format lists) and items' neighbours "
    "(--format neighbours)"
)


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
    of_users, of_items = vectors.with_bias()
    tensors = {"user_vectors": of_users, "item_vectors": np.ascontiguousarray(of_items.T)}
    return _serialise("score_users", nodes, users, tensors, ids, len(vectors.items))


def history_graph(scorer: Scorer, n_items: int, ids: Mapping[str, Sequence[Id]]) -> bytes | None:
    """histories, float32 (n, n_items) -> scores, float32 (n, n_items); none for a scorer that is
    more than products.

    An entry is 0 for an item that the person does not have, and 1 / (1 + how many came later), or
    1, for the rest.
    """
    onnx, formula = _onnx(), OnnxFormula()
    scores = scorer.write(formula)
    if scores is None:
        return None
    formula.step("Identity", scores, to="scores")
    shape = ["n", n_items]
    given = onnx.helper.make_tensor_value_info("histories", onnx.TensorProto.FLOAT, shape)
    return _serialise("score_histories", formula.nodes, given, formula.tensors, ids, n_items)


class OnnxFormula(Formula):
    """Nodes and tensors of a graph that begins with `histories`."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: dict[str, Any] = {"axis": np.array([1], np.int64)}
        self.has = self.step("Sign", "histories")
        self.degree = self.step("ReduceSum", self.has, "axis")

    def step(self, kind: str, *given: str, to: str | None = None, **options: Any) -> str:
        name = to or f"step {len(self.nodes)}"
        self.nodes.append(_onnx().helper.make_node(kind, list(given), [name], **options))
        return name

    def tensor(self, values: Any) -> str:
        name = f"table {len(self.tensors)}"
        self.tensors[name] = np.asarray(values, np.float32)
        return name

    def weighted(self, weights: HistoryWeights, *, rooted: bool = False) -> str:
        power = self.step("Pow", "histories", self.tensor([weights.recency]))
        if weights.memory is not None and weights.fades:
            later = self.step("Sub", self.tensor([1]), self.step("Reciprocal", "histories"))
            faded = self.step("Exp", self.step("Div", later, self.tensor([weights.memory])))
            power = self.step("Mul", power, faded)
        values = self.step("Mul", self.has, power)  # multiplied, since 0 to the power 0 is 1
        total = self.step("ReduceSum", values, "axis")
        divisor = self.step("Max", total, self.tensor([1e-30]))
        degree = self.step("Sqrt", self.degree) if rooted else self.degree
        return self.step("Mul", values, self.step("Div", degree, divisor))

    def times(self, rows: str, shape: tuple[int, int], table: Callable[[], Scores]) -> str:
        size = 4 * math.prod(shape)
        if sum(held.nbytes for held in self.tensors.values()) + size > MOST_BYTES:
            raise ConfigError(
                f"a table of {shape[0]:,} x {shape[1]:,} weights exceeds the 2 GB that an ONNX "
                f"file can hold; {INSTEAD}"
            )
        require_memory(COPIES * size, "an ONNX file of this model", INSTEAD)
        return self.step("MatMul", rows, self.tensor(table()))

    def constant(self, scores: Scores) -> str:
        nothing = self.step("Mul", self.degree, self.tensor([0]))
        return self.step("Add", nothing, self.tensor(scores[None]))

    def unit(self, rows: str) -> str:
        squares = self.step("ReduceSum", self.step("Mul", rows, rows), "axis")
        length = self.step("Max", self.step("Sqrt", squares), self.tensor([1e-12]))
        return self.step("Div", rows, length)

    def plus(self, rows: str, scores: Scores) -> str:
        return self.step("Add", rows, self.tensor(scores[None]))

    def blended(self, members: Sequence[str], weights: Sequence[float]) -> str:
        found = []
        for member, weight in zip(members, weights, strict=True):
            centred = self.step("Sub", member, self.step("ReduceMean", member, axes=[1]))
            squares = self.step("Mul", centred, centred)
            spread = self.step("Sqrt", self.step("ReduceMean", squares, axes=[1]))
            divisor = self.step("Max", spread, self.tensor([1e-12]))
            scaled = self.step("Div", centred, divisor)
            found.append(self.step("Mul", scaled, self.tensor([weight])))
        return self.step("Sum", *found)


def _serialise(
    name: str,
    nodes: list[Any],
    given: Any,
    tensors: dict[str, Any],
    ids: Mapping[str, Sequence[Id]],
    width: int,
) -> bytes:
    onnx = _onnx()
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

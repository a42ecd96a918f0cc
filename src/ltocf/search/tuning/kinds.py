"""What each kind of event should count, chosen on held-out pairs of the kind that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import numpy as np
import polars as pl

from ltocf.data.ids import IdMap
from ltocf.data.ingest.cells.kinds import HIDE, sign_of_kind
from ltocf.data.ingest.log import Log
from ltocf.data.ingest.read_log import read_log
from ltocf.data.ingest.readers import LogSource, open_log
from ltocf.data.ingest.recipe import Reading
from ltocf.data.interactions import Interactions
from ltocf.data.splits import contains, hold_out_validation, no_split, placed
from ltocf.errors import ConfigError, DataError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.progress import Progress, silent
from ltocf.ranking.metrics import evaluate

AUTO = "auto"
TARGET = 5.0  # the weight of the target kind
TRIED = (0.0, 0.5, 1.0, 2.0, 5.0)  # weights to try for each other kind
JUDGE = "rp3beta"  # a second or so for a million pairs
MOST_KINDS, FEWEST = 20, 50  # the most kinds; the fewest held-out pairs to decide on

Weights = dict[str, float | str]


def choose_weights(
    source: LogSource, how: Reading, target: str | None, progress: Progress = silent
) -> Weights:
    """`weigh` for this log: a kind that is not a like takes back or hides, by its name. Each other
    kind gets the weight that ranks held-out pairs of the kind `target` best, one kind after
    another."""
    if how.kind is None or target is None:
        raise ConfigError(
            "weigh auto (--weigh auto) needs the column of kinds and the kind that matters: "
            "kind=, target= (--kind COLUMN --target purchase)"
        )
    kinds = kinds_of(source, how)
    if target not in kinds:
        raise ConfigError(
            f"target {target!r} (--target) is not a kind of this log; choose one of: "
            f"{', '.join(kinds)}"
        )
    chosen: Weights = {kind: _by_name(kind) for kind in kinds}
    chosen[target] = TARGET
    likes = [kind for kind in kinds if chosen[kind] == 0.0 or kind == target]
    read = {kind: _pairs(source, how, kinds, kind) for kind in likes}
    judge = _Judge(read, target)
    others = [kind for kind in likes if kind != target]
    best = {kind: 1.0 for kind in others} | {target: TARGET}
    score = judge(best)
    for done, kind in enumerate(others):
        progress("weighing kinds", done, len(others), kind)
        found = {value: judge(best | {kind: value}) for value in TRIED if value != best[kind]}
        better = max(found, key=lambda value: found[value])
        if found[better] > score:
            best[kind], score = better, found[better]
    return chosen | best


def kinds_of(source: LogSource, how: Reading) -> list[str]:
    """Every kind that a log has, in alphabetical order."""
    column = Log.open(source, replace(how, weigh={"": 1.0})).columns.kind
    found: set[str] = set()
    for table in open_log(source, how.text_options()).tables:
        text = pl.col(str(column)).cast(pl.String).str.strip_chars().drop_nulls().unique()
        found |= set(table.frame.select(text).collect(engine="streaming").to_series().to_list())
    if len(found) > MOST_KINDS:
        raise DataError(
            f"the column of kinds {column!r} has {len(found)} values; weigh auto (--weigh auto) "
            f"takes at most {MOST_KINDS}; give each kind its weight instead"
        )
    return sorted(found)


class _Judge:
    """The NDCG@20 of held-out pairs of the target kind, by a model fitted to the weighted kinds."""

    def __init__(self, read: Mapping[str, Interactions], target: str) -> None:
        users, items = IdMap([]), IdMap([])
        for pairs in read.values():
            users = users.extended(pairs.user_ids.ids.to_list())
            items = items.extended(pairs.item_ids.ids.to_list())
        self.pairs = {kind: placed(pairs, users, items) for kind, pairs in read.items()}
        held = hold_out_validation(no_split(self.pairs[target]), seed=0).valid
        if len(held) < FEWEST:
            raise DataError(
                f"weigh auto (--weigh auto): only {len(held)} pairs of {target!r} could be held "
                "out to choose by; give each kind its weight instead"
            )
        self.held = held

    def __call__(self, weights: Mapping[str, float]) -> float:
        train: Interactions | None = None
        for kind, pairs in self.pairs.items():
            # A user who bought an item also viewed it: all of its events must be held out.
            kept = pairs.select(~contains(self.held, pairs))
            if not weights[kind] or not len(kept):
                continue
            strength = np.ones(len(kept), np.float32) if kept.weights is None else kept.weights
            weighed = replace(kept, timestamps=None, weights=strength * np.float32(weights[kind]))
            train = weighed if train is None else train.union(weighed)
        assert train is not None, "the target counts"
        model = build_model(BipartiteGraph(train), JUDGE, {})
        model.initialise_(0)
        return evaluate(model.scorer(), self.held, train)["ndcg@20"]


def _by_name(kind: str) -> float | str:
    sign = sign_of_kind(kind)
    if sign == -inf:
        return HIDE
    return -TARGET if sign < 0 else 0.0


def _pairs(source: LogSource, how: Reading, kinds: list[str], wanted: str) -> Interactions:
    only: Weights = {kind: float(kind == wanted) for kind in kinds}
    return read_log(source, how, weigh=only).interactions

"""People who were not in training, by half of what they have: how good, and how fast?

A tenth of the users is held out of training entirely. Half of everybody's items is a history; the
other half is to be found among all items that are not in it. Compared: fold-in, fold-in with
gradient steps, the same users trained in (their histories in the training data, the same settings),
and implicit's ALS, folded in and trained in, with the best of a few settings on the same split.

    python -m benchmarks.new_users --data $LTOCF_DATA/gowalla --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from ltocf.data.interactions import Interactions
from ltocf.data.sources.catalog import load_dataset
from ltocf.models import MODELS
from ltocf.ranking.metrics import evaluate
from ltocf.recommend.new_users import score_new
from ltocf.recommend.recommender import Recommender

K, ONE_BY_ONE = 20, 300
ALS = [{"regularization": r, "alpha": a} for r in (0.01, 10.0) for a in (1.0, 20.0)]


def hold_out(
    everything: Interactions, fraction: float, seed: int
) -> tuple[Interactions, Interactions, Interactions]:
    """The pairs of the users who stay, and the history and the rest of those held out."""
    random = np.random.default_rng(seed)
    active = np.flatnonzero(everything.user_degrees >= 2)
    chosen = np.zeros(everything.n_users, dtype=bool)
    chosen[random.permutation(active)[: int(fraction * len(active))]] = True
    out = chosen[everything.users]
    drawn = np.lexsort([random.random(len(everything)), everything.users])
    place = np.arange(len(everything)) - everything.indptr[everything.users]
    rest = np.empty(len(everything), dtype=bool)
    rest[drawn] = 2 * place < everything.user_degrees[everything.users]
    return (everything.select(m) for m in (~out, out & ~rest, out & rest))  # type: ignore[return-value]


def matrix_of(pairs: Interactions) -> csr_array:
    ones = np.ones(len(pairs), dtype=np.float32)
    return csr_array((ones, pairs.items, pairs.indptr), shape=(pairs.n_users, pairs.n_items))


def measure_ours(
    known: Interactions, history: Interactions, rest: Interactions, model: str, settings: Any
) -> dict[str, float]:
    started = time.perf_counter()
    out = Recommender(model, **settings).fit(known)
    seconds = time.perf_counter() - started
    inside = Recommender(model, **settings).fit(known.union(history))
    matrix, result = matrix_of(history), {"train_seconds": seconds}
    for steps in (0, 10, 30) if out.scorer.vectors() is not None else (0,):
        name = f"fold_in_{steps}_steps" if steps else "fold_in"
        started = time.perf_counter()
        result[f"{name}_recall"] = evaluate(
            lambda rows, steps=steps: score_new(out.scorer, matrix[rows], steps=steps),
            rest,
            history,
            [K],
        )[f"recall@{K}"]
        users = np.count_nonzero(rest.user_degrees)
        result[f"{name}_ms_a_user"] = 1000 * (time.perf_counter() - started) / users
    result["trained_in_recall"] = evaluate(inside.scorer, rest, history, [K])[f"recall@{K}"]
    some = np.flatnonzero(rest.user_degrees)[:ONE_BY_ONE]
    ids = [history.item_ids[history.items_of(user)] for user in some]
    result["one_by_one_ms"] = median_ms(lambda n: out.recommend_new(ids[n], K), len(ids))
    return result


def measure_als(
    known: Interactions, history: Interactions, rest: Interactions, factors: int
) -> dict[str, Any]:
    from implicit.cpu.als import AlternatingLeastSquares

    def train(pairs: Interactions, settings: Any) -> Any:
        model = AlternatingLeastSquares(factors=factors, random_state=0, num_threads=1, **settings)
        model.fit(csr_matrix(matrix_of(pairs)), show_progress=False)
        return model

    users = np.flatnonzero(rest.user_degrees)
    rows = csr_matrix(matrix_of(history))[users]

    def recall(model: Any, *, fold_in: bool) -> float:
        found, _ = model.recommend(users, rows, N=K, recalculate_user=fold_in)
        hits = [np.isin(rest.items_of(user), found[n]).mean() for n, user in enumerate(users)]
        return float(np.mean(hits))

    models = [(train(known, settings), settings) for settings in ALS]
    best, settings = max(models, key=lambda pair: recall(pair[0], fold_in=True))
    started = time.perf_counter()
    folded = recall(best, fold_in=True)
    batch_ms = 1000 * (time.perf_counter() - started) / len(users)
    one = median_ms(
        lambda n: best.recommend(0, rows[n], N=K, recalculate_user=True),
        min(ONE_BY_ONE, len(users)),
    )
    return {
        "als_settings": settings,
        "als_fold_in_recall": folded,
        "als_fold_in_ms_a_user": batch_ms,
        "als_one_by_one_ms": one,
        "als_trained_in_recall": recall(train(known.union(history), settings), fold_in=False),
    }


def median_ms(ask: Callable[[int], object], times: int) -> float:
    seconds = []
    for n in range(times):
        started = time.perf_counter()
        ask(n)
        seconds.append(time.perf_counter() - started)
    return 1000 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="town")
    parser.add_argument("--model", default="ltocf")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--fraction", type=float, default=0.1)
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    arguments = parser.parse_args()
    split = load_dataset(arguments.data).split
    parts = hold_out(split.seen.union(split.test), arguments.fraction, seed=0)
    known, history, rest = parts
    solved = MODELS[arguments.model].solved()
    settings: dict[str, Any] = {} if solved else {"epochs": arguments.epochs}
    if "start" in MODELS[arguments.model].Config.model_fields:
        settings["start"] = "spectral"  # a few epochs then suffice
    for text in arguments.setting:
        key, _, value = text.partition("=")
        settings[key] = json.loads(value) if value[:1] in "0123456789-[tf" else value
    result: dict[str, Any] = {"model": arguments.model, **settings}
    result["held_out_users"] = int(np.count_nonzero(rest.user_degrees))
    result |= measure_ours(known, history, rest, arguments.model, settings)
    result |= measure_als(known, history, rest, factors=64)
    result["ratio"] = result["fold_in_recall"] / result["trained_in_recall"]
    if not arguments.json:
        for name, value in result.items():
            print(f"{name:28} {value}")
    print(json.dumps({"data": Path(arguments.data).name} | result))


if __name__ == "__main__":
    main()

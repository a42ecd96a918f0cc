"""The automatic choice, on data where the right answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import build_model
from ltocf.runs import automatic
from ltocf.runs.automatic import choose_model, with_validation


def test_the_choice_is_the_best_of_what_was_tried_and_can_be_built(hamlet: Dataset) -> None:
    lines: list[str] = []
    name, options = choose_model(hamlet.split, 600, lines.append)
    tried = {line.split(":")[0] for line in lines if "seconds" in line}
    assert tried == {candidate for candidate, _ in automatic.CANDIDATES}
    best = max(float(line.split("recall@20 ")[1].split()[0]) for line in lines[:-1])
    assert lines[-1] == f"chosen: {name}, with the best recall@20 on validation, {best:.4f}"
    build_model(BipartiteGraph(hamlet.split.train), name, options)


def test_a_bad_candidate_is_not_chosen(hamlet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "CANDIDATES", (("random", {}), ("rp3beta", {})))
    monkeypatch.setattr(automatic, "BLEND_WEIGHTS", ())
    assert choose_model(hamlet.split, 600) == ("rp3beta", {})


def test_a_spent_budget_still_compares_two_and_says_what_it_left_out(hamlet: Dataset) -> None:
    lines: list[str] = []
    choose_model(hamlet.split, 0, lines.append)
    left_out = [line for line in lines if "not tried" in line]
    assert len(left_out) == len(automatic.CANDIDATES) - 2
    assert left_out[0].startswith("gfcf: not tried, ")


def test_validation_is_each_users_latest_tenth_where_times_are_known(hamlet: Dataset) -> None:
    users, items = np.repeat([0, 1], 20), np.tile(np.arange(20), 2)
    times = np.concatenate([np.arange(20)[::-1], np.arange(20)])  # user 0 took item 0 last
    train = Interactions.build(users, items, 2, 20, times)
    nothing = train.select(np.zeros(40, dtype=bool))
    split = replace(hamlet.split, train=train, valid=nothing)
    assert with_validation(split, seed=0).valid.items.tolist() == [0, 1, 18, 19]
    some = np.arange(40) % 3 == 0  # a random validation set gives way
    split = replace(hamlet.split, train=train.select(~some), valid=train.select(some))
    assert with_validation(split, seed=0).valid.items.tolist() == [0, 1, 18, 19]
    untimed = replace(hamlet.split, train=_untimed(train, ~some), valid=_untimed(train, some))
    assert with_validation(untimed, seed=0) is untimed


def _untimed(pairs: Interactions, chosen: NDArray[np.bool_]) -> Interactions:
    return replace(pairs.select(chosen), timestamps=None)


def test_recency_is_chosen_where_people_move(hamlet: Dataset) -> None:
    draw = np.random.default_rng(0)
    moves = []  # each one takes ten items of one district of twenty, then ten of another
    for user in range(150):
        for half, district in enumerate(draw.choice(12, 2, replace=False)):
            for step, item in enumerate(draw.choice(20, 10, replace=False)):
                moves.append((user, 20 * district + item, 10 * half + step))
    users, items, times = np.array(moves).T
    train = Interactions.build(users, items, 150, 240, times)
    nothing = train.select(np.zeros(len(train), dtype=bool))
    lines: list[str] = []
    split = replace(hamlet.split, train=train, valid=nothing, test=nothing)
    name, options = choose_model(split, 600, lines.append)
    chosen = options.get("parts", [{"options": options}])
    assert all(part["options"]["recency"] in automatic.RECENCIES for part in chosen)
    assert " with recency 0." in lines[0]
    build_model(BipartiteGraph(train), name, options)

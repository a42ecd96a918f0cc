"""Whether lines are in the order of time, on lines whose order is known."""

from __future__ import annotations

import numpy as np
import pytest

from ltocf.data.interactions import Interactions
from ltocf.data.sources.line_order import find_order
from ltocf.data.sources.text_folder import load_text_folder, order_line

PEOPLE, DISTRICTS, EACH = 400, 12, 20


def lines(kind: str, seed: int = 0) -> list[list[int]]:
    """People go through two districts, one after the other: in that order, shuffled, or sorted."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(PEOPLE):
        first, second = random.choice(DISTRICTS, 2, replace=False)
        line = [
            int(EACH * district + item)
            for district in (first, second)
            for item in random.choice(EACH, 8, replace=False)
        ]
        if kind == "shuffled":
            random.shuffle(line)
        if kind == "sorted":
            line.sort()
        if kind == "by a rank of the items":
            line.sort(key=lambda item: (item * 7919) % 1009)
        made.append(line)
    return made


def interactions(made: list[list[int]]) -> Interactions:
    users = np.repeat(np.arange(len(made)), [len(line) for line in made])
    items = np.concatenate([np.array(line) for line in made])
    return Interactions.build(users, items, PEOPLE, DISTRICTS * EACH, np.arange(len(items)))


@pytest.mark.parametrize(
    ("kind", "ordered", "reason"),
    [
        ("in order", True, "neighbours go together"),
        ("shuffled", False, "neighbours go together"),
        ("sorted", False, "of the lines are sorted by id"),
        ("by a rank of the items", False, "items stand in one order in all lines"),
    ],
)
def test_an_order_of_time_is_distinguished_from_other_orders(
    kind: str, ordered: bool, reason: str
) -> None:
    found = find_order(interactions(lines(kind)))
    assert found.ordered == ordered, found
    assert reason in found.reason


@pytest.mark.parametrize("seed", range(20))
def test_a_random_order_is_not_taken_for_time(seed: int) -> None:
    assert not find_order(interactions(lines("shuffled", seed))).ordered


def test_items_with_a_beginning_tell_the_order_too() -> None:
    random = np.random.default_rng(0)
    made = [sorted(random.choice(240, 12, replace=False).tolist()) for _ in range(PEOPLE)]
    noisy = [sorted(line, key=lambda item: item + random.normal(0, 150)) for line in made]
    assert find_order(interactions(noisy)).ordered


def test_few_lines_tell_nothing() -> None:
    assert not find_order(interactions(lines("in order")[:50])).ordered


def test_the_order_of_a_folders_lines_is_detected_unless_it_is_given(tmp_path) -> None:  # type: ignore[no-untyped-def]
    made = lines("in order")
    for name, part in (("train.txt", slice(None, -2)), ("test.txt", slice(-2, None))):
        text = "\n".join(" ".join(map(str, [user, *line[part]])) for user, line in enumerate(made))
        (tmp_path / name).write_text(text + "\n")
    found = load_text_folder(tmp_path, "folder")
    assert found.split.train.timestamps is not None
    assert str(order_line(found)).startswith("the order of lines is of time")
    told = load_text_folder(tmp_path, "folder", ordered=False)
    assert told.split.train.timestamps is None

import threading

import pytest
import torch

from ltocf.batches import ahead
from ltocf.batches.ahead import AHEAD, Batch, Batches


def rows(start: int, stop: int) -> Batch:
    numbers = torch.arange(start, stop)
    return Batch(numbers, numbers, numbers[:, None])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(ahead, "CHUNK", 4)


def test_batches_and_their_parts_hold_every_row_once_and_in_order():
    batches = Batches(23, 10, rows)
    found = [(rows, [chunk.users.tolist() for chunk in chunks]) for rows, chunks in batches]
    assert len(batches) == 3
    assert found == [
        (10, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        (10, [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19]]),
        (3, [[20, 21, 22]]),
    ]


def test_no_more_than_a_few_parts_wait():
    drawn = []

    def draw(start, stop):
        drawn.append(start)
        return rows(start, stop)

    batches = iter(Batches(4000, 4000, draw))
    next(next(batches).chunks)
    batches.close()
    assert len(drawn) <= AHEAD + 1


def test_whoever_stops_in_the_middle_leaves_no_thread_behind():
    before = threading.active_count()
    for _, chunks in Batches(4000, 40, rows):
        next(chunks)
        break
    assert threading.active_count() == before


def test_an_error_in_the_drawing_thread_is_raised_where_batches_are_read():
    def draw(start, stop):
        raise ValueError("cannot draw")

    with pytest.raises(ValueError, match="cannot draw"):
        for _, chunks in Batches(10, 5, draw):
            list(chunks)

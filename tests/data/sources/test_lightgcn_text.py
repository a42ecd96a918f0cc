import re

import numpy as np
import pytest

from ltocf.data.sources.lightgcn_text import read_lightgcn
from ltocf.errors import DataError


def write(tmp_path, text: str):
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", ["0 1 2\n1\n3 0 2", "0 1 2 \r\n1 \r\n\r\n3\t0  2\r\n\n"])
def test_a_line_is_a_user_and_their_items_and_an_empty_one_keeps_the_user(tmp_path, text):
    pairs = read_lightgcn(write(tmp_path, text))
    assert pairs.user_ids.ids.to_list() == [0, 1, 3]
    assert pairs.user_ids[pairs.users] == [0, 0, 3, 3]
    assert pairs.item_ids[pairs.items] == [1, 2, 0, 2]


def test_places_serve_as_times_where_lines_are_in_order(tmp_path):
    path = write(tmp_path, "0 7 2 5\n1 5 2\n")
    assert read_lightgcn(path).timestamps is None
    pairs = read_lightgcn(path, in_order=True)
    in_time = np.lexsort((pairs.timestamps, pairs.users))
    assert pairs.item_ids[pairs.items[in_time]] == [7, 2, 5, 5, 2]


def test_sparse_numbers_cost_no_memory(tmp_path):
    pairs = read_lightgcn(write(tmp_path, "900000000000 123456789012345678\n"))
    assert pairs.n_users == pairs.n_items == 1
    assert pairs.item_ids.ids.to_list() == [123456789012345678]


def test_a_repeated_item_counts_once(tmp_path):
    assert len(read_lightgcn(write(tmp_path, "0 5 5 5\n0 5\n"))) == 1


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("0 1\n1 2 abc 3\n", 2, "abc"),
        ("user item\n0 1\n", 1, "user"),
        ("0 1\n\n2 12x4 5\n", 3, "12x4"),
        ("0 1\n1 -2\n", 2, "-2"),
        ("0,1\n1,2\n", 1, "0,1"),
        ("0 1.5\n", 1, "1.5"),
        ("0 1\n1 1234567890123456789\n", 2, "1234567890123456789"),
    ],
)
def test_anything_but_whole_numbers_is_refused_with_its_line(tmp_path, text, line, word):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=re.escape(f"train.txt:{line}: ") + f".*got '{word}'"):
        read_lightgcn(path)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(tmp_path, text):
    with pytest.raises(DataError, match=r"train\.txt: the file is empty"):
        read_lightgcn(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"train\.txt: no such file"):
        read_lightgcn(tmp_path / "train.txt")
    with pytest.raises(DataError, match=r"cannot be read"):
        read_lightgcn(tmp_path)

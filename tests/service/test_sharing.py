"""Workers map one copy of the model's tables, and answer as before."""

from pathlib import Path

import pytest

from ltocf.recommend.recommender import Recommender
from ltocf.service.served import Served
from ltocf.service.sharing import share_


def lies_in(table, path):
    """Whether a tensor's memory is a mapping of this file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(text, 16) for text in line.split()[0].split("-"))
        if start <= table.data_ptr() < end:
            return line.endswith(str(path))
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_shared_tables_are_pages_of_one_file_and_change_nothing(hamlet, tmp_path):
    recommender = Recommender("ltocf", dim=8, epochs=1, negatives=4).fit(hamlet)
    users = hamlet.split.train.user_ids.ids.head(20).to_list()
    before = recommender.recommend(users, 10)
    share_(Served(recommender, "7"), tmp_path)
    file = tmp_path / "model-7.safetensors"
    vectors = recommender.scorer.vectors()
    for table in (recommender.model.weight, vectors.users, vectors.items, vectors.history):
        assert lies_in(table, file)
    assert recommender.recommend(users, 10).equals(before)
    written = file.stat().st_mtime_ns
    share_(Served(recommender, "7"), tmp_path)
    assert file.stat().st_mtime_ns == written
    assert recommender.explain(users[0], hamlet.split.train.item_ids.ids[0]).score


def test_a_closed_form_has_nothing_more_to_share(hamlet, tmp_path):
    recommender = Recommender("ease").fit(hamlet)
    share_(Served(recommender), tmp_path)
    assert recommender.recommend(hamlet.split.train.user_ids.ids[0], 3).height == 3

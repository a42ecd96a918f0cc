"""The guard of the ratios, on figures that are made up."""

import json

import pytest
from benchmarks.guard import KEPT, RATIOS, fallen, kept_ratios

FASTER, SLOWER = "NumPy's draws over ours", "evaluation over the bare product"


def test_a_ratio_may_be_worse_by_a_fifth_and_no_more():
    kept = {FASTER: 5.0, SLOWER: 1.2}
    assert not fallen({FASTER: 4.1, SLOWER: 1.45}, kept)
    assert not fallen({FASTER: 50.0, SLOWER: 0.5}, kept)
    assert len(fallen({FASTER: 3.9, SLOWER: 1.3}, kept)) == 1
    assert len(fallen({FASTER: 4.1, SLOWER: 1.6}, kept)) == 1


def test_without_kept_ratios_the_guard_fails_and_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="--write"):
        kept_ratios(tmp_path / "ratios.json")


def test_what_is_kept_is_what_is_measured(tmp_path):
    path = KEPT if KEPT.exists() else tmp_path / "ratios.json"
    if path != KEPT:
        path.write_text(json.dumps({"ratios": dict.fromkeys(RATIOS, 1.0)}))
    assert kept_ratios(path).keys() == RATIOS.keys()

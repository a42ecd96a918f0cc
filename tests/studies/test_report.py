from __future__ import annotations

from ltocf.studies.report import compare


def test_a_difference_is_set_against_the_spread_of_the_seeds():
    clear = compare("new", [0.20, 0.21], "old", [0.10, 0.11])
    assert "+0.1000" in clear and "which is more than twice the seeds' spread (0.0071)" in clear
    assert "not more than twice" in compare("new", [0.10, 0.12], "old", [0.10, 0.11])


def test_one_seed_proves_nothing():
    assert "its spread is not known" in compare("new", [0.2], "old", [0.1, 0.1])

from __future__ import annotations

import json


def test_without_a_study_they_are_listed_with_what_each_takes(ltocf):
    code, out, _ = ltocf("reproduce")
    assert code == 0
    for name in ("table", "curves", "solvers", "connections", "T", "K", "times", "runtime"):
        assert any(line.split()[:1] == [name] for line in out.splitlines()), name
    listed = json.loads(ltocf("reproduce", "--json")[1])
    assert {"name", "paper", "shows", "trainings", "seconds"} == set(listed[0])


def test_a_wrong_study_name_lists_the_right_ones(ltocf):
    code, out, err = ltocf("reproduce", "tabel")
    assert (code, out) == (2, "")
    assert "unknown study 'tabel'" in err and "curves" in err and "all" in err


def test_a_study_of_a_prepared_data_set_ends_with_its_report(ltocf, hamlet, tmp_path):
    hamlet.save(tmp_path / "data")
    arguments = ["reproduce", "recipes", "epochs=1", "dim=4", "--data", tmp_path / "data"]
    arguments += ["--budget", "quick", "--seeds", "1", "-o", tmp_path / "out", "--json"]
    code, out, err = ltocf(*arguments)
    assert code == 0, err
    assert json.loads(out) == {"report": str(tmp_path / "out/report.md"), "studies": ["recipes"]}
    assert "studies 100/100" in err  # progress over the whole
    assert (
        "with epochs=1 dim=4 for every training that has it"
        in (tmp_path / "out/report.md").read_text()
    )
    arguments[-1] = "--latex"  # of what is done already
    code, out, err = ltocf(*arguments)
    assert code == 0 and out.startswith(r"\begin{tabular}") and "LightGCN" in out

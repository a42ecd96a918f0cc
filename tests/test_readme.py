import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_ten_lines_of_python_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert "chess" in capsys.readouterr().out
    assert (tmp_path / "runs" / "first" / "weights.safetensors").is_file()


def test_ci_runs_the_commands_of_the_readme():
    ci = (Path(__file__).parent.parent / ".ci" / "run").read_text()
    for command in ("make demo", "make test"):
        assert command in README
        assert command in ci

"""What SECURITY.md promises that a test can see: no network unasked, no code from files."""

import ast
import socket
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "ltocf"
NETWORK = {"socket", "http.client", "urllib.request", "requests", "httpx", "ftplib", "smtplib"}
CODE = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_only_the_download_the_service_and_its_client_can_use_the_network():
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if imports(path) & NETWORK and "service" not in path.parts
    }
    assert users == {"data/sources/download.py", "client.py"}


def test_nothing_that_runs_code_from_files_is_imported():
    assert not [path for path in PACKAGE.rglob("*.py") if imports(path) & CODE]


def test_preparing_training_and_recommending_open_no_connection(ltocf, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    (tmp_path / "log.csv").write_text("user,item\na,x\na,y\nb,x\nb,z\nc,y\nc,z\n")
    data, run = tmp_path / "data", tmp_path / "run"
    assert ltocf("prepare", tmp_path / "log.csv", "-o", data, "--split", "none")[0] == 0
    assert ltocf("train", data, "-o", run, "--model", "itemknn")[0] == 0
    assert ltocf("recommend", run, "--user", "a", "-k", "1")[0] == 0


@pytest.mark.parametrize("name", ["torch.load", "eval(", "exec(", "yaml.load"])
def test_no_file_is_ever_executed(name):
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    calls = [path for path, text in texts.items() if f" {name}" in text or f"({name}" in text]
    assert not calls

"""Run commands in processes that may be killed: forked from one that has imported everything.

A fresh process spends seconds on imports, which no kill can damage; a forked one works at once.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 180.0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), and what it wrote."""

    code: int
    seconds: float
    megabytes: int
    out: str
    err: str

    @property
    def clear(self) -> bool:
        """One line that says what is wrong, and nothing else that looks like a crash."""
        last = self.err.strip().splitlines()[-1:] or [""]
        crashed = "Traceback" in self.err or "panicked" in self.err
        return self.code == 2 and last[0].startswith("error: ") and not crashed


class Lab:
    """Starts processes in a directory of its own; use as a context manager."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._number = 0

    def __enter__(self) -> Lab:
        paths = [str(ROOT / "src"), str(ROOT)]
        # Threads of OpenMP do not survive a fork, and small problems are faster without.
        settings = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        settings |= {"XDG_CACHE_HOME": str(self.directory / "cache")}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.lab"],
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | settings,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._server.stdin, self._server.stdout):
            if pipe is not None:
                pipe.close()
        self._server.wait(timeout=30)

    def ltocf(self, *arguments: object, **options: Any) -> Ended:
        """Run a command line; see `together` for the options."""
        return self.together([arguments], **options)[0]

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        """What `module:function` returns in a process of its own; an AssertionError if it dies."""
        answer = self.directory / f"answer-{self._number}.json"
        ended = self._start([{"call": function, "with": arguments, "answer": str(answer)}], options)
        if ended[0].code != 0:
            raise AssertionError(f"{function}{arguments} ended with {ended[0]}")
        return json.loads(answer.read_text())

    def together(self, commands: list[tuple[object, ...]], **options: Any) -> list[Ended]:
        """Run command lines at the same time.

        kill_after: seconds, or 0 for never. file_limit: bytes a file may grow to. env: variables.
        """
        return self._start([{"ltocf": [str(word) for word in line]} for line in commands], options)

    def _start(self, work: list[dict[str, Any]], options: dict[str, Any]) -> list[Ended]:
        self._number += 1
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps({"work": work} | options), file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        if not answer:
            raise AssertionError("the process that starts the others has died")
        return [Ended(**each) for each in json.loads(answer)]


def _serve() -> None:
    """Answer each line of requests, in a process that never starts a thread of its own."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    _import_everything()
    for number, line in enumerate(requests):
        request = json.loads(line)
        running = [
            _fork(request, work, Path(f"child-{number}-{index}"))
            for index, work in enumerate(request["work"])
        ]
        ended = _wait(running, request.get("kill_after", 0))
        print(json.dumps(ended), file=answers, flush=True)


def _import_everything() -> None:
    import importlib
    import pkgutil

    import ltocf

    for module in pkgutil.walk_packages(ltocf.__path__, "ltocf."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    import hnswlib
    import onnx
    import optuna
    import pandas
    import sqlalchemy
    import torch._dynamo  # which an optimiser imports when it is made

    assert hnswlib and onnx and optuna and pandas and sqlalchemy and torch
    from tests.faults import town

    town.shrink()


def _fork(request: dict[str, Any], work: dict[str, Any], files: Path) -> tuple[int, Path]:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            for number, suffix in ((1, "out"), (2, "err")):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                os.dup2(os.open(files.with_suffix(f".{suffix}"), flags, 0o644), number)
            os.environ.update(request.get("env", {}))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limit := request.get("file_limit"):
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            code = _work(work)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    return process, files


def _work(work: dict[str, Any]) -> int:
    if "ltocf" in work:
        from ltocf.cli import main

        sys.argv = ["ltocf", *work["ltocf"]]
        main()
        return 0
    import importlib

    module, _, name = work["call"].partition(":")
    result = getattr(importlib.import_module(module), name)(*work["with"])
    Path(work["answer"]).write_text(json.dumps(result))
    return 0


def _wait(running: list[tuple[int, Path]], kill_after: float) -> list[dict[str, Any]]:
    """Wait for all, kill all when their time has come, and tell how each one ended."""
    started, limit = time.monotonic(), kill_after or LONGEST_SECONDS
    ended: dict[int, dict[str, Any]] = {}
    killed = False
    while len(ended) < len(running):
        seconds = time.monotonic() - started
        if not killed and seconds >= limit:
            killed = True
            for process, _ in running:
                if process not in ended:
                    os.kill(process, signal.SIGKILL)
        for process, files in running:
            if process not in ended:
                found, status, usage = os.wait4(process, os.WNOHANG)
                if found:
                    texts = {
                        suffix: files.with_suffix(f".{suffix}").read_text(errors="replace")
                        for suffix in ("out", "err")
                    }
                    ended[process] = {
                        "code": os.waitstatus_to_exitcode(status),
                        "seconds": time.monotonic() - started,
                        "megabytes": usage.ru_maxrss // 1024,
                    } | texts
        time.sleep(0.001)
    return [ended[process] for process, _ in running]


if __name__ == "__main__":
    _serve()

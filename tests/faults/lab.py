"""Run commands in processes that may be killed: forked from one that has imported everything.

A fresh process spends seconds on imports, which no kill can damage; a forked one works at once.
"""

from __future__ import annotations

import fcntl
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
PIPE_BYTES = 1 << 20
Child = tuple[int, int, int]  # a process, and where its output and its errors can be read


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
        ended = self.start(function, *arguments, **options)
        if ended.code != 0:
            raise AssertionError(f"{function}{arguments} ended with {ended}")
        return json.loads((self.directory / "answer.json").read_text())

    def start(self, function: str, *arguments: Any, **options: Any) -> Ended:
        """How a process that calls `module:function` ends."""
        answer = str(self.directory / "answer.json")
        return self._start([{"call": function, "with": arguments, "answer": answer}], options)[0]

    def together(self, commands: list[tuple[object, ...]], **options: Any) -> list[Ended]:
        """Run command lines at the same time.

        kill_after: seconds, or 0 for never. kill_from: a path whose existence starts that clock.
        file_limit: bytes a file may grow to. env: variables.
        """
        return self._start([{"ltocf": [str(word) for word in line]} for line in commands], options)

    def _start(self, work: list[dict[str, Any]], options: dict[str, Any]) -> list[Ended]:
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
    for line in requests:
        request = json.loads(line)
        running = [_fork(request, work) for work in request["work"]]
        ended = _wait(running, request.get("kill_after", 0), request.get("kill_from"))
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


def _fork(request: dict[str, Any], work: dict[str, Any]) -> Child:
    # Pipes, since a limit on files must not hold for what the process says.
    pipes = {1: os.pipe(), 2: os.pipe()}
    for _, end in pipes.values():
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            for number, (_, end) in pipes.items():
                os.dup2(end, number)
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
    for _, end in pipes.values():
        os.close(end)
    return process, pipes[1][0], pipes[2][0]


def _read(pipe: int) -> str:
    """What a process that has ended wrote. Its children may still hold the other end."""
    os.set_blocking(pipe, False)
    found = b""
    with suppress(BlockingIOError):
        while piece := os.read(pipe, PIPE_BYTES):
            found += piece
    os.close(pipe)
    return found.decode(errors="replace")


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


def _wait(running: list[Child], kill_after: float, kill_from: str | None) -> list[dict[str, Any]]:
    """Wait for all, kill all when their time has come, and tell how each one ended."""
    started = clock = time.monotonic()
    ended: dict[int, dict[str, Any]] = {}
    killed, waiting = False, kill_from is not None
    while len(ended) < len(running):
        if waiting and os.listdir(kill_from):
            waiting, clock = False, time.monotonic()
        late = time.monotonic() - started >= LONGEST_SECONDS
        due = kill_after and not waiting and time.monotonic() - clock >= kill_after
        if not killed and (late or due):
            killed = True
            for process, _, _ in running:
                if process not in ended:
                    os.kill(process, signal.SIGKILL)
        for process, out, err in running:
            if process not in ended:
                found, status, usage = os.wait4(process, os.WNOHANG)
                if found:
                    ended[process] = {
                        "code": os.waitstatus_to_exitcode(status),
                        "seconds": time.monotonic() - started,
                        "megabytes": usage.ru_maxrss // 1024,
                        "out": _read(out),
                        "err": _read(err),
                    }
        time.sleep(0.001)
    return [ended[process] for process, _, _ in running]


if __name__ == "__main__":
    _serve()

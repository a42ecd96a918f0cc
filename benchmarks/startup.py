"""What it costs to start: the help, commands that train nothing, one list from the shell, and a
service.

Each is a process of its own, whose processor seconds are counted until it ends; of the service, the
seconds until /ready answers, and its memory then (PSS, where a page that n processes share counts
1/n, and RSS). With --before REVISION the same is measured of that revision, in turns with the tree
as it is, on a run that each of them trains; `ratio` is before over now.

    python -m benchmarks.startup --json
    python -m benchmarks.startup --before v0.1.0 --rounds 7 --json
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import machine

ROOT = Path(__file__).parent.parent
PATIENCE = 120  # seconds
Figures = dict[str, float]


class Tree:
    """A checked-out tree of ltocf, and a run that it can read."""

    def __init__(self, root: Path, run: Path) -> None:
        # With compiled bytecode, as an installed package has it. The first round writes it.
        kept = {name: of for name, of in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        bytecode = str(Path(tempfile.gettempdir()) / "ltocf-bytecode")
        told = {"PYTHONPATH": str(root / "src"), "PYTHONPYCACHEPREFIX": bytecode}
        self.environment = kept | told
        self.run = run

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ltocf", *arguments]

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command(*arguments), env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def processor_seconds(self, *arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.call(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def service(self) -> Figures:
        """A service on a free port, until it is ready; then it is ended."""
        with tempfile.TemporaryDirectory() as folder:
            events = str(Path(folder) / "events.db")
            command = self.command("serve", str(self.run), "--port", "0", "--events", events)
            started = time.perf_counter()
            process = subprocess.Popen(
                command, env=self.environment, stderr=subprocess.PIPE, text=True
            )
            try:
                assert process.stderr is not None
                address = next(line for line in process.stderr if "http://127.0.0.1:" in line)
                port = int(address.split("127.0.0.1:")[1].split()[0].strip("/,."))
                wait_until_ready(port, started + PATIENCE)
                seconds = time.perf_counter() - started
                return {"ready_seconds": seconds, **megabytes(process.pid)}
            finally:
                process.terminate()
                process.communicate(timeout=PATIENCE)


def wait_until_ready(port: int, until: float) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            if time.perf_counter() > until:
                raise
            time.sleep(0.02)


def megabytes(process: int) -> Figures:
    """Linux only."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"pss_megabytes": kilobytes["Pss"] / 1024, "rss_megabytes": kilobytes["Rss"] / 1024}


def measure(tree: Tree, user: str) -> Figures:
    run = str(tree.run)
    commands = {
        "help": ["--help"],
        "datasets": ["datasets"],
        "models": ["models"],
        "models_ltocf": ["models", "ltocf"],
        "doctor": ["doctor"],
        "items": ["items", run],
        "popular": ["popular", run],
        "recommend": ["recommend", run, "--user", user],
    }
    return {
        **{f"{name}_processor_seconds": tree.processor_seconds(*c) for name, c in commands.items()},
        **tree.service(),
    }


def medians(samples: list[Figures]) -> Figures:
    return {name: statistics.median(each[name] for each in samples) for name in samples[0]}


def some_user(run: Path) -> str:
    from ltocf.recommend.recommender import Recommender

    return str(Recommender.load(run).dataset.split.train.user_ids.ids[0])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, help="default: a model trained on the town")
    parser.add_argument("--model", default="gfcf", help="that is trained; default: gfcf")
    parser.add_argument("--before", metavar="REVISION", help="measure this one in turns with it")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        roots = {"now": ROOT}
        if arguments.before:
            roots["before"] = folder / "tree"
            git = ["git", "-C", str(ROOT), "worktree"]
            subprocess.run(
                [*git, "add", "--detach", str(roots["before"]), arguments.before],
                check=True,
                capture_output=True,
            )
            stack.callback(subprocess.run, [*git, "remove", "--force", str(roots["before"])])
        trees = {}
        for name, root in roots.items():
            trees[name] = Tree(root, arguments.run or folder / f"run-{name}")
            if not arguments.run:
                train = ["train", "town", "--model", arguments.model]
                trees[name].call(*train, "--output", str(trees[name].run))
        user = some_user(trees["now"].run)
        samples: dict[str, list[Figures]] = {name: [] for name in trees}
        for number in range(arguments.rounds + 1):
            for name, tree in trees.items():
                figures = measure(tree, user)
                if number:  # the first round compiles and fills caches
                    samples[name].append(figures)
    result: dict[str, object] = {name: medians(each) for name, each in samples.items()}
    if arguments.before:
        now, before = medians(samples["now"]), medians(samples["before"])
        result["ratio"] = {name: before[name] / now[name] for name in now}
    result |= {"machine": machine(), "rounds": arguments.rounds}
    print(json.dumps(result, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()

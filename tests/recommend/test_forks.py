"""A forked child cannot use polars once its parent has: it is told, and never left hanging. Threads
that ask at once get their lists."""

import os
import signal
import subprocess
import sys

import polars as pl
import pytest

LOG = {"user": [0, 0, 1, 1, 2, 2, 3], "item": [5, 6, 5, 7, 6, 7, 5]}
SECONDS = 30  # until SIGALRM ends a child that hangs
PARENT = f"""
import os, signal, sys
import polars as pl
from ltocf import LtocfError, Recommender

def child(ask):
    if (pid := os.fork()) == 0:
        signal.alarm({SECONDS})
        try:
            code = ask()
        except LtocfError as error:
            print(error, flush=True)
            os._exit(2)
        # Never by sys.exit: a fork that shuts its interpreter down may wait for threads it has not.
        os._exit(code if isinstance(code, int) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="the names of threads are Linux's to tell"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from ltocf import Recommender

    path = tmp_path_factory.mktemp("forks") / "run"
    Recommender("chebycf").fit(pl.DataFrame(LOG)).save(path)
    return path


def outcome(script, *arguments, **environment):
    """What a parent of its own prints: this process has threads of many kinds by now."""
    command = [sys.executable, "-W", "ignore", "-c", PARENT + script, *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=20 * SECONDS,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_child_of_a_process_that_has_answered_is_told_what_to_do(run):
    script = """
recommender = Recommender.load(sys.argv[1])
recommender.recommend([0, 1], 2)
print(child(lambda: recommender.recommend([0, 1], 2)))
print(child(lambda: Recommender.load(sys.argv[1])))
print(child(lambda: child(lambda: recommender.recommend([0, 1], 2))))
"""
    told = outcome(script, run)
    assert str(-signal.SIGALRM) not in told
    assert told.count("was forked from one that had used polars") == 3
    assert told.count("'spawn' or 'forkserver', or load the run only after the fork") == 3


def test_a_child_is_told_whatever_model_was_fitted_and_whatever_it_asks_for(run, tmp_path):
    log = tmp_path / "log.csv"
    pl.DataFrame(LOG).write_csv(log)
    script = """
from ltocf.data.dataset import Dataset
from ltocf.runs.update import update_run

log = pl.read_csv(sys.argv[2])
for name in ("ltocf", "chebycf", "cmn", "neumf"):
    trained = {} if name == "chebycf" else {"dim": 2, "epochs": 1, "protocol": "fixed"}
    recommender = Recommender(name, **trained).fit(log)
    print(child(lambda: recommender.recommend_new([5], 2)))
print(child(lambda: Recommender("ease").fit(log)))
print(child(lambda: Dataset.load(sys.argv[1] + "/data")))
print(child(lambda: update_run(sys.argv[1], sys.argv[2])))
"""
    told = outcome(script, run, log)
    assert told.count("was forked from one that had used polars") == 7
    assert str(-signal.SIGALRM) not in told


def test_a_child_that_loads_the_run_itself_answers(run):
    script = "print(child(lambda: Recommender.load(sys.argv[1]).recommend([0, 1], 2)))"
    assert outcome(script, run) == "0\n"


def test_a_process_that_has_answered_goes_on_after_a_fork(run):
    script = """
recommender = Recommender.load(sys.argv[1])
before = recommender.recommend([0, 1], 2)
child(lambda: None)
print(before.equals(recommender.recommend([0, 1], 2)))
"""
    assert outcome(script, run) == "True\n"


def test_lists_at_once_do_not_abort_where_numba_has_only_its_work_queue():
    script = f"""
from concurrent.futures import ThreadPoolExecutor
recommender = Recommender("ease").fit(pl.DataFrame({LOG!r}))
wanted = recommender.recommend([0, 1, 2, 3], 2)
with ThreadPoolExecutor(8) as pool:
    lists = list(pool.map(lambda _: recommender.recommend([0, 1, 2, 3], 2), range(64)))
print(all(wanted.equals(found) for found in lists))
"""
    assert outcome(script, NUMBA_THREADING_LAYER="workqueue") == "True\n"

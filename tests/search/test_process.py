"""A search as two processes: the watcher keeps the time, the worker can be ended at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ltocf.data.dataset import Dataset
from ltocf.deadlines import Deadline
from ltocf.errors import RunError
from ltocf.progress import OutOfTime, silent
from ltocf.ranking import metrics as ranking
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import Run
from ltocf.runs.versions import in_use, use_version
from ltocf.search.journal import Trial
from ltocf.search.process import worker
from ltocf.search.process.job import Job, is_search, pairs_in
from ltocf.search.process.keeping import RunKeeper
from ltocf.search.publishing import Choice
from ltocf.search.results import CHOSEN, SearchResult
from ltocf.search.searching import Search


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ltocf", "train", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, watcher: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert watcher.poll() is None, watcher.communicate()
        time.sleep(0.02)


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker in /proc")
def test_whatever_ends_a_search_the_best_so_far_is_there_and_it_goes_on(
    hamlet: Dataset, tmp_path: Path
) -> None:
    hamlet.save(tmp_path / "data")
    run = tmp_path / "run"
    user = hamlet.split.train.user_ids.ids[0]

    watcher = start(tmp_path / "data", "-o", run, "--budget", "10m")
    wait_for(run / "current.json", watcher)  # a second version
    (searching,) = children(watcher.pid)
    watcher.send_signal(signal.SIGTERM)
    out, err = watcher.communicate(timeout=60)
    assert watcher.returncode == 130, err
    assert f"ltocf train --resume -o {run}" in out
    assert not Path(f"/proc/{searching}").exists()
    assert Recommender.load(run).recommend(user, 3).height == 3
    before = in_use(run).current

    tried = (run / "search" / "journal.jsonl").read_text()
    watcher = start("--resume", "-o", run, "--budget", "10m")
    while (run / "search" / "journal.jsonl").read_text() == tried:
        assert watcher.poll() is None, watcher.communicate()
        time.sleep(0.02)
    (searching,) = children(watcher.pid)
    watcher.kill()  # the worker is not left behind
    watcher.communicate()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{searching}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{searching}/exe").exists()
    assert (run / "search" / "journal.jsonl").read_text().startswith(tried)
    assert in_use(run).current >= before
    assert Recommender.load(run).recommend(user, 3).height == 3


def test_a_search_that_ends_by_itself_is_tested_and_says_what_it_tried(
    ltocf, hamlet: Dataset, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    hamlet.save(tmp_path / "data")
    run = tmp_path / "run"
    code, out, err = ltocf("train", tmp_path / "data", "-o", run, "--budget", "15", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["version"] == in_use(run).current
    assert found["saved"][0]["label"] == "popularity"
    assert "would probably do better" not in err  # a search need not be told to search
    assert is_search(run) and pairs_in(run) == len(hamlet.split.train)
    if found["ended"] == "done":
        opened = Run.open(run)
        assert json.loads((opened.path / "auto.json").read_text()) == found["tried"]
        assert opened.metrics() == found["metrics"]


def test_a_wrong_setting_is_an_error_before_anything_is_written(ltocf, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = ltocf("train", "town", "dim=0", "tempo=1", "-o", tmp_path / "run")
    assert (code, out) == (2, "")
    assert "unknown key 'tempo'" in err
    assert not (tmp_path / "run").exists()


def test_a_search_that_goes_on_without_time_leaves_what_was_saved(
    hamlet: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blend, which is not fitted again, and for which no single model is saved instead."""
    run, trials = (
        tmp_path / "run",
        [
            Trial(name, {}, recall, recall, 0.1, 0.1, 0.1)
            for name, recall in (("popularity", 0.2), ("gfcf", 0.3))
        ],
    )
    asked = Recommender("auto").config
    keeper = RunKeeper(run, asked, hamlet)
    search = Search(hamlet, asked, Deadline(600), keeper=keeper)
    search._save_first()
    for trial in trials:
        keeper.journal.add_trial(trial)
    search._keep(Choice(tuple(trials), (1.0, 0.5), 0.4, 0.4), silent)

    again = RunKeeper.resume(run, lambda saved: None)
    found = Search(
        again.dataset, again.config, Deadline(0), journal=again.journal, keeper=again
    ).run()
    assert found.choice.label == again.journal.saved[-1].label == "1 popularity + 0.5 gfcf"
    assert [saved.version for saved in again.journal.saved] == [1, 2]
    assert in_use(run).current == 2
    assert type(found.model).__name__ == "Blend"
    assert [row.note for row in found.rows if row.note == CHOSEN] == [CHOSEN]


def test_a_search_does_not_undo_an_update(hamlet: Dataset, tmp_path: Path) -> None:
    keeper = RunKeeper(tmp_path / "run", Recommender().config, hamlet)
    recommender = Recommender("popularity").fit(hamlet)
    choice = Choice.single(Trial("popularity", {}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    keeper.save(choice, recommender.config, recommender.dataset, recommender.model)
    Run.store(
        tmp_path / "run" / "versions" / "2",
        recommender.config,
        recommender.dataset,
        recommender.model,
        {},
    )
    use_version(tmp_path / "run", 2)
    with pytest.raises(RunError, match="the version in use, 2, was not made by the search"):
        RunKeeper.resume(tmp_path / "run", lambda saved: None)


def test_an_update_leaves_nothing_of_the_search_behind(
    ltocf, hamlet: Dataset, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    run = tmp_path / "run"
    keeper = RunKeeper(run, Recommender().config, hamlet)
    recommender = Recommender("popularity").fit(hamlet)
    choice = Choice.single(Trial("popularity", {}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    keeper.save(choice, recommender.config, recommender.dataset, recommender.model)
    assert is_search(run)
    ids = hamlet.split.train.item_ids.ids
    (tmp_path / "more.csv").write_text(f"user,item,time\nsomebody new,{ids[0]},1800000000\n")
    code, _, err = ltocf("update", run, tmp_path / "more.csv")
    assert code == 0, err
    assert in_use(run).current == 2 and not is_search(run)


def test_a_job_reads_back_as_it_was_written() -> None:
    job = Job("runs/a", time.time(), 90.0, {"dataset": "town"}, order="time", resume=True)
    assert Job.read(job.to_json()) == job
    assert job.ends == job.began + 90
    assert os.path.basename(job.output) == "a"


@pytest.mark.parametrize(("stop_after", "tested"), [(None, 0), (1, 20), (0, None)])
def test_where_there_is_no_time_for_all_some_users_are_tested(
    hamlet: Dataset, monkeypatch: pytest.MonkeyPatch, stop_after: int | None, tested: int | None
) -> None:
    monkeypatch.setattr(worker, "FEWEST_TESTED", 20)
    config = Recommender("popularity").config
    choice = Choice.single(Trial("popularity", {}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    model = Recommender("popularity").fit(hamlet).model
    found = SearchResult(config, hamlet, model, choice, [])
    evaluations = 0

    def evaluate(*arguments: Any, **options: Any) -> ranking.Metrics:
        nonlocal evaluations
        evaluations += 1
        if stop_after is not None and evaluations > stop_after:
            raise OutOfTime
        return ranking.evaluate(*arguments, **options)

    monkeypatch.setattr(worker, "evaluate", evaluate)
    search = SimpleNamespace(progress=silent)
    metrics, sampled = worker._test(found, search, Deadline(600.0))  # type: ignore[arg-type]
    if tested is None:
        assert metrics == {}
        return
    split = hamlet.split
    users = ranking.testable_users(split.test, tested or None, config.seed)
    assert sampled == tested
    expected = ranking.evaluate(model.scorer(), split.test, split.seen, (10, 20, 50), users=users)
    assert metrics == expected

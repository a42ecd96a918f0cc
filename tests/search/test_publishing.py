"""Which of the models that a search tries are saved, and trained on which pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ltocf.config import RunConfig
from ltocf.data.dataset import Dataset
from ltocf.deadlines import Deadline
from ltocf.models.blend import Blend
from ltocf.models.ltocf import LTOCF
from ltocf.progress import OutOfTime, silent
from ltocf.search.candidates import CANDIDATES
from ltocf.search.journal import Journal
from ltocf.search.process.keeping import RunKeeper
from ltocf.search.publishing import Choice
from ltocf.search.results import CHOSEN
from ltocf.search.searching import Search
from ltocf.storage.files import writing

BRIEF = RunConfig(model={"name": "auto"}, train={"epochs": 2})


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """LT-OCF with two settings, beside popularity."""
    for name in set(CANDIDATES) - {"popularity", "ltocf"}:
        monkeypatch.delitem(CANDIDATES, name)


def without_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time ends while a model is trained on all pairs."""

    def late(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr("ltocf.search.publishing.trained_on_everything", late)


def search_of(data: Dataset, keeper: RunKeeper) -> Search:
    return Search(data, BRIEF, Deadline(60), journal=keeper.journal, keeper=keeper)


def kept(folder: Path, data: Dataset) -> RunKeeper:
    return RunKeeper(folder / "run", BRIEF, data)


def test_a_model_that_there_was_no_time_to_train_on_all_pairs_is_saved_as_it_was_judged(
    hamlet: Dataset, tmp_path: Path, trained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_time_for_all(monkeypatch)
    keeper = kept(tmp_path, hamlet)
    with writing(tmp_path / "run"):
        search = search_of(hamlet, keeper)
        found = search.run()
    assert found.choice.provisional
    assert keeper.journal.saved[-1].provisional
    assert "ltocf" in found.choice.short
    assert sum(row.note == CHOSEN for row in found.rows) == 1
    (judged,) = (trial for trial in found.choice.trials if trial.name == "ltocf")
    before = search._on_train(judged)
    place, model = found.choice.trials.index(judged), found.model
    after = model.members[place] if isinstance(model, Blend) else model
    assert isinstance(after, LTOCF)
    # The parameters that were judged, with the graph and the histories of all pairs.
    for name, parameter in before.named_parameters():
        np.testing.assert_array_equal(parameter.detach(), after.get_parameter(name).detach())
    assert after.graph.interactions.fingerprint == hamlet.split.seen.fingerprint


def test_a_search_that_goes_on_trains_it_on_all_pairs(
    hamlet: Dataset, tmp_path: Path, trained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path / "run"):
        with monkeypatch.context() as patch:
            without_time_for_all(patch)
            search_of(hamlet, kept(tmp_path, hamlet)).run()
        keeper = RunKeeper.resume(tmp_path / "run", lambda saved: None)
        assert Choice.restored(keeper.journal).provisional
        found = search_of(hamlet, keeper).run()
    assert not found.choice.provisional
    assert not keeper.journal.saved[-1].provisional


def test_a_surpassed_training_is_still_known_also_when_a_search_goes_on(
    hamlet: Dataset, tmp_path: Path, trained: None
) -> None:
    file = tmp_path / "journal.jsonl"
    search = Search(hamlet, BRIEF, Deadline(60), journal=Journal(file))
    (arm,) = (arm for arm in search.arms if arm.name == "ltocf")
    arm.begin(0.0)
    limit = search.deadline.limit(60, silent)
    first = arm.attempt(0.0, limit, search.deadline.limit(60, silent))
    while len({trial.fit_key for trial in search.journal.trials.values()}) < 2:
        last = arm.attempt(
            0.0, search.deadline.limit(60, silent), search.deadline.limit(60, silent)
        )
    again = Search(hamlet, BRIEF, Deadline(60), journal=Journal(file))
    for trial in (first, last):
        known, read = search._on_train(trial), again._on_train(trial)
        for name, value in known.fitted_state().items():
            np.testing.assert_array_equal(value, read.fitted_state()[name])
    assert not np.array_equal(
        search._on_train(first).get_parameter("weight").detach(),
        search._on_train(last).get_parameter("weight").detach(),
    )

"""A saved run answers as the model does that wrote it, from mapped files and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ltocf.data.sources.town import make_town
from ltocf.errors import RunError
from ltocf.models import MODELS
from ltocf.recommend.recommender import Recommender
from ltocf.runs.run import load_scorer
from ltocf.storage.arrays import CACHE_LINE, map_arrays, save_arrays
from tests.models.toys import used_by

MEMBERS = [
    {"model": "gfcf", "weight": 1.0, "options": {"rank": 4}},
    {"model": "ltocf", "weight": 0.5, "options": {"dim": 4}},
]
EVERYBODY = np.arange(40, dtype=np.int32)


@cache
def fitted(name: str) -> Recommender:
    fields = MODELS[name].Config.model_fields
    small = {key: 4 for key in ("dim", "rank") if key in fields}
    more = {"members": MEMBERS} if name == "blend" else {}
    quick = used_by(name, epochs=1, negatives=2, protocol="fixed")
    town = make_town(people=40, places=30, seed=2).dataset
    return Recommender(name, **small, **quick, **more).fit(town)


@pytest.mark.parametrize("name", MODELS)
def test_a_stored_scorer_gives_the_scores_of_the_model(name: str, tmp_path: Path) -> None:
    fitted(name).save(tmp_path / "run")
    assert (tmp_path / "run" / "scorer.safetensors").is_file()
    run, scorer = load_scorer(tmp_path / "run")
    np.testing.assert_array_equal(scorer(EVERYBODY), run.load().scorer()(EVERYBODY))
    np.testing.assert_array_equal(scorer(EVERYBODY), fitted(name).scorer(EVERYBODY))


ASK = """
import json, sys
from ltocf import Recommender
for run in sys.argv[1:]:
    found = Recommender.load(run).recommend("person 3", 5)
    print(json.dumps(found["item"].to_list()))
heavy = [name for name in ("torch", "ltocf.models.base", "ltocf.search") if name in sys.modules]
print(json.dumps(heavy))
"""


def test_a_list_from_a_saved_run_of_any_model_takes_no_torch(tmp_path: Path) -> None:
    for name in MODELS:
        fitted(name).save(tmp_path / name)
    user = fitted("mf").fitted.seen.user_ids.ids[3]
    script = ASK.replace("person 3", str(user))
    runs = [str(tmp_path / name) for name in MODELS]
    answer = subprocess.run([sys.executable, "-c", script, *runs], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    *lists, heavy = map(json.loads, answer.stdout.splitlines())
    assert heavy == []
    assert lists == [fitted(name).recommend(user, 5)["item"].to_list() for name in MODELS]


@pytest.mark.parametrize("name", ["ltocf", "mf", "gfcf", "ease", "itemknn", "blend"])
def test_a_run_holds_no_large_array_twice(name: str, tmp_path: Path) -> None:
    fitted(name).save(tmp_path / "run")
    arrays = [
        array
        for file in ("weights", "scorer")
        for array in map_arrays(tmp_path / "run" / f"{file}.safetensors")[0].values()
        if array.size > 60
    ]
    assert len({array.tobytes() for array in arrays}) == len(arrays)
    if name in ("mf", "gfcf", "ease", "itemknn"):  # whose weights are all there is to ask
        own = map_arrays(tmp_path / "run" / "scorer.safetensors")[0]
        assert sum(array.nbytes for array in own.values()) < 1000


def lies_in(array: np.ndarray, path: Path) -> bool:
    """Whether an array's memory is a mapping of this file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(text, 16) for text in line.split()[0].split("-"))
        if start <= array.ctypes.data < end:
            return line.endswith(str(path))
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_the_tables_of_a_loaded_run_are_pages_of_its_files(tmp_path: Path) -> None:
    fitted("ltocf").save(tmp_path / "run")
    scorer = load_scorer(tmp_path / "run")[1]
    found = scorer.vectors()
    assert found is not None and found.history is not None
    for table in (found.users, found.items, found.history):
        assert lies_in(table, tmp_path / "run" / "scorer.safetensors")
        assert table.ctypes.data % CACHE_LINE == 0
    assert lies_in(scorer.fold.own, tmp_path / "run" / "weights.safetensors")  # type: ignore[attr-defined]


def test_other_readers_take_our_array_files(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    arrays = {"a": np.arange(5, dtype=np.int32), "b": np.eye(3), "c": np.zeros(0, np.float32)}
    save_arrays(tmp_path / "file", arrays, {"about": "us"})
    read = load_file(tmp_path / "file")
    mapped, metadata = map_arrays(tmp_path / "file")
    assert metadata == {"about": "us"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        np.testing.assert_array_equal(mapped[name], array)
    mapped["a"][0] = 7  # in this process alone
    assert map_arrays(tmp_path / "file")[0]["a"][0] == 0


def test_a_scorer_that_is_not_ours_is_named(tmp_path: Path) -> None:
    fitted("mf").save(tmp_path / "run")
    (tmp_path / "run" / "digests.json").unlink()
    save_arrays(tmp_path / "run" / "scorer.safetensors", {}, {"scorer": "{}"})
    with pytest.raises(RunError, match=r"scorer\.safetensors is not one that ltocf wrote"):
        load_scorer(tmp_path / "run")

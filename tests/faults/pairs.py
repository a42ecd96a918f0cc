"""Two commands at once on one output: both right, or one right and one clear refusal."""

from __future__ import annotations

import json
import random

from ltocf.data.dataset import Dataset
from ltocf.runs.run import Run

from .contents import contents, leftovers
from .kills import BULK, EXPORT, PREPARE, RUN, SCENARIOS, World, _open_run
from .lab import Ended

TWICE = {
    "prepare": (*PREPARE, "--overwrite"),
    "train": (*SCENARIOS["train"].command, "--overwrite"),
    "recommend": (*BULK, "--overwrite"),
    "export": (*EXPORT, "--overwrite"),
}


def same_twice(world: World, name: str, together: int = 2) -> int:
    """The same command several times at once; returns how many were refused."""
    expected = world.undisturbed(name)
    world.fresh()
    ended = world.lab.together([TWICE[name]] * together)
    refused = [each for each in ended if not _went_well(name, each)]
    assert len(refused) < together, (name, ended)
    output = world.trial / SCENARIOS[name].output
    assert contents(output) == expected, (name, ended)
    assert not leftovers(world.trial), (name, leftovers(world.trial))
    return len(refused)


def _went_well(name: str, ended: Ended) -> bool:
    if ended.code == 0:
        return True
    reasons = (
        "is being written by",
        "was replaced by another",
        "was updated by another",
        "finished",
    )
    assert ended.clear and any(reason in ended.err for reason in reasons), (name, ended)
    return False


def two_updates(world: World) -> int:
    """What each successful one added is there; returns how many were refused."""
    trial = world.fresh("run")
    log = (world.directory / "new.csv").read_text().splitlines(keepends=True)
    for name, rows in (("a.csv", log[1::2]), ("b.csv", log[2::2])):
        (trial / name).write_text(log[0] + "".join(rows))
    pairs = len(Run.open(trial / "run").dataset.split.train)
    commands = [("update", RUN, f"trial/{name}", "--json") for name in ("a.csv", "b.csv")]
    ended = world.lab.together(commands)
    added = [
        json.loads(each.out)["added"]["interactions"]
        for each in ended
        if _went_well("update", each)
    ]
    assert added, ended
    assert len(Run.open(trial / "run").dataset.split.train) == pairs + sum(added), ended
    _open_run(trial / "run")
    return len(commands) - len(added)


def read_while_replaced(world: World, random_: random.Random) -> int:
    """Readers of a run that is replaced meanwhile give the old answer or the new one."""
    world.fresh("run")
    ask = ("recommend", RUN, "--user", _somebody(world), "--json")
    answers = {world.do(*ask).out}
    seed = random_.randrange(100, 1000)
    replace = ("train", "data", "-o", RUN, "--overwrite", "--model", "itemknn", f"seed={seed}")
    ended = world.lab.together([replace, *[ask] * 3, ("evaluate", RUN, "--json")])
    answers.add(world.do(*ask).out)
    assert ended[0].code == 0, ended[0]
    for reader in ended[1:]:
        between = reader.clear and "has not been trained" in reader.err
        assert reader.code == 0 or between, reader
        assert reader.code or "recommendations" not in reader.out or reader.out in answers, reader
    return sum(reader.code == 0 for reader in ended[1:])


def _somebody(world: World) -> str:
    return str(Dataset.load(world.directory / "data").split.train.user_ids.ids[3])

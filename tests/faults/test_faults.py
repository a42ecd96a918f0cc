"""A few of each kind; `make faults` does many."""

import random

import pytest

from . import damage, disks, kills, pairs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["prepare", "train", "update"])
def test_a_killed_command_goes_on_to_the_same_end(world, name):
    kills.kill_once(world, name, random.Random(3))  # asserts that; it may end before the kill


def test_a_killed_download_starts_again(world):
    assert kills.kill_download_once(world, random.Random(0))


@pytest.mark.parametrize("name", disks.COMMANDS)
def test_a_disk_that_fills_up_is_one_line(world, name):
    world.fresh("run" if name == "update" else None)
    assert disks.check_refused(world, name, file_limit=40)


@pytest.mark.parametrize("name", ["prepare", "response"])
def test_a_disk_that_cannot_be_written_is_one_line(world, name):
    if disks.refuse_writing(world, name) is None:
        pytest.skip("no disk can be mounted here")


def test_of_two_trainings_into_one_directory_one_fails_and_names_the_other(world):
    assert pairs.same_twice(world, "train") == 1


def test_of_two_updates_at_once_none_is_lost(world):
    pairs.two_updates(world)  # asserts that; one may be refused


def test_readers_of_a_run_that_is_replaced_see_one_of_the_two(world):
    pairs.read_while_replaced(world, random.Random(0))  # asserts that of each reader


@pytest.mark.parametrize("name", ["config.toml", "weights.safetensors", "data/train.parquet"])
def test_a_harmed_file_is_named_or_makes_no_difference(world, name):
    world.fresh("run")
    call = "tests.faults.damage:damage_file"
    assert world.lab.call(call, "run", "trial/run", name, "run", 5)["named"] > 70


def test_a_harmed_cache_is_computed_again(world):
    world.fresh()
    name, found = world.lab.call("tests.faults.damage:damage_cache", "trial", 6)
    assert name.endswith(".safetensors")
    assert set(found) == {"right"}


def test_every_harm_was_done(world):
    path = world.fresh() / "file.json"
    path.write_bytes(b"0123456789")
    done = list(damage.harms(str(path), b"0123456789", b"other", random.Random(0)))
    assert len(done) == damage.TRUNCATIONS + damage.FLIPS + len(damage.HOSTILE[".json"]) + 5
    assert path.read_bytes() == b"0123456789"


@pytest.mark.parametrize("name", ["fuzz_logs", "fuzz_settings"])
def test_malformed_input_is_read_or_refused_with_an_error(world, name):
    assert world.lab.call(f"tests.faults.inputs:{name}", 12) > 0

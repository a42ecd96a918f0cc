import math
import threading

import numba
import pytest
import torch
from threadpoolctl import threadpool_info

from ltocf.errors import ConfigError
from ltocf.machine.threads import (
    SMALL,
    cgroup_quota,
    share_out,
    threads_for,
    usable_cores,
    use_threads,
)


@pytest.fixture
def restored():
    yield
    use_threads(None)


def test_small_work_has_one_thread_and_large_work_all():
    before = torch.get_num_threads(), numba.get_num_threads()
    with threads_for(SMALL - 1):
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    with threads_for(SMALL):
        assert (torch.get_num_threads(), numba.get_num_threads()) == before
    assert (torch.get_num_threads(), numba.get_num_threads()) == before


def test_one_setting_is_that_of_torch_numba_and_blas(restored):
    assert use_threads(1) == 1
    assert torch.get_num_threads() == numba.get_num_threads() == 1
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def test_without_a_setting_there_are_as_many_threads_as_cores_to_use(restored):
    assert use_threads() == torch.get_num_threads() == usable_cores()


def test_no_threads_are_refused(restored):
    with pytest.raises(ConfigError, match="threads = 0: must be at least 1"):
        use_threads(0)


def cgroup(root, line, files):
    """A control group file system with these files, and the file that tells our place in it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    membership = root / "membership"
    membership.write_text(line + "\n")
    return cgroup_quota(membership, root)


def test_a_quota_of_version_2_is_read_from_the_group_and_those_above_it(tmp_path):
    files = {"a/cpu.max": "150000 100000\n", "a/b/cpu.max": "max 100000\n"}
    assert cgroup(tmp_path, "0::/a/b", files) == 1.5


def test_a_quota_of_version_1_is_read_from_the_cpu_controller(tmp_path):
    files = {
        "cpu,cpuacct/box/cpu.cfs_quota_us": "300000",
        "cpu,cpuacct/box/cpu.cfs_period_us": "100000",
        "memory/box/cpu.cfs_quota_us": "100000",
    }
    assert cgroup(tmp_path, "4:cpu,cpuacct:/box\n3:memory:/box", files) == 3


def test_in_a_container_the_root_is_its_own_group(tmp_path):
    assert cgroup(tmp_path, "0::/host/path/unseen", {"cpu.max": "200000 100000"}) == 2


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu.max": "max 100000"},
        {"cpu.max": "nonsense"},
        {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
    ],
)
def test_without_a_quota_there_is_no_limit(tmp_path, files):
    assert cgroup(tmp_path, "1:cpu:/\n0::/", files) == math.inf


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11])
def test_shared_out_ranges_cover_everything_once(n):
    seen = []
    share_out(lambda start, stop: seen.extend(range(start, stop)), n, 5)
    assert sorted(seen) == list(range(n))


def test_a_delayed_thread_delays_only_its_own_range(restored):
    use_threads(2)
    others_done, done = threading.Event(), []

    def run(start, stop):
        if start == 0:
            assert others_done.wait(10)  # the other thread must do all the rest meanwhile
        done.append(start)
        if len(done) == 7:
            others_done.set()

    share_out(run, 8, 1)
    assert sorted(done) == list(range(8)) and done[-1] == 0


def test_an_error_in_a_thread_reaches_the_caller(restored):
    use_threads(2)

    def fail(start, stop):
        raise ConfigError("from a thread")

    with pytest.raises(ConfigError, match="from a thread"):
        share_out(fail, 8, 1)

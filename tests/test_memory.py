from pathlib import Path

import pytest

from ltocf.errors import ConfigError
from ltocf.machine.memory import available_bytes, require_memory
from ltocf.recommend.recommender import Recommender

GIB = 2**30


def machine(root: Path, files: dict[str, str]) -> Path:
    """A file system that says this of itself."""
    for name, text in {"proc/meminfo": f"MemAvailable: {8 * GIB // 1024} kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_limits_it_is_what_the_machine_has(tmp_path):
    assert available_bytes(machine(tmp_path, {})) == 8 * GIB
    assert available_bytes(machine(tmp_path, {"proc/self/cgroup": "0::/\n"})) == 8 * GIB


def test_a_control_group_has_the_least_memory_left_by_its_limit_and_those_above_it(tmp_path):
    group = "sys/fs/cgroup/all/mine"
    files = {
        "proc/self/cgroup": "0::/all/mine\n",
        f"{group}/memory.max": "max\n",
        f"{group}/../memory.max": f"{3 * GIB}\n",
        f"{group}/../memory.current": f"{2 * GIB}\n",
        f"{group}/../memory.stat": f"anon 5\ninactive_file {GIB}\n",
    }
    assert available_bytes(machine(tmp_path, files)) == 2 * GIB


def test_the_first_version_of_control_groups_is_read_too(tmp_path):
    group = "sys/fs/cgroup/memory"
    files = {
        "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/gone\n",
        f"{group}/memory.limit_in_bytes": f"{GIB}\n",
        f"{group}/memory.usage_in_bytes": f"{GIB // 4}\n",
    }
    assert available_bytes(machine(tmp_path, files)) == 3 * GIB // 4
    endless = files | {f"{group}/memory.limit_in_bytes": "9223372036854771712\n"}
    assert available_bytes(machine(tmp_path, endless)) == 8 * GIB


def test_where_free_memory_is_unknown_nothing_is_refused(tmp_path, monkeypatch):
    assert available_bytes(tmp_path) is None
    monkeypatch.setattr("ltocf.machine.memory.available_bytes", lambda: None)
    require_memory(1e30, "everything", "do less")


def test_it_can_be_overruled(monkeypatch):
    monkeypatch.setenv("LTOCF_MEMORY", "0.5")
    assert available_bytes() == 500_000_000
    with pytest.raises(ConfigError, match=r"all needs about 2\.0 GB of memory, but 0\.5 GB are"):
        require_memory(2e9, "all", "do less")
    monkeypatch.setenv("LTOCF_MEMORY", "plenty")
    with pytest.raises(ConfigError, match="LTOCF_MEMORY = 'plenty': give gigabytes"):
        available_bytes()


@pytest.mark.parametrize("model", ["ltocf", "ease", "turbocf", "neumf"])
def test_work_that_needs_too_much_memory_is_refused_before_it_starts(hamlet, monkeypatch, model):
    monkeypatch.setenv("LTOCF_MEMORY", "0.00001")
    with pytest.raises(ConfigError, match=r"needs about .* of memory, but 0\.0 GB are available"):
        Recommender(model).fit(hamlet)


def test_vectors_that_no_machine_holds_are_refused_at_once(hamlet):
    with pytest.raises(ConfigError, match="a vector of dim 10,000,000,000 for each of"):
        Recommender("mf", dim=10**10).fit(hamlet)


def test_bulk_lists_are_refused_too(hamlet, monkeypatch, tmp_path):
    from ltocf.recommend.bulk import recommend_all

    recommender = Recommender("popularity").fit(hamlet)
    monkeypatch.setenv("LTOCF_MEMORY", "0.01")
    with pytest.raises(ConfigError, match=r"among 90 items needs about 0\.1 GB"):
        recommend_all(recommender, tmp_path / "lists.parquet")
    assert list(tmp_path.iterdir()) == []

"""Damage done to every file: the right answer or an error that names the file, nothing else."""

from __future__ import annotations

import json
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ltocf.errors import LtocfError

TRUNCATIONS, FLIPS = 8, 64
HUGE = 1 << 40
NEST = 200_000
MOST_MEGABYTES = 1500  # above what the process has when it starts
SLOWEST_SECONDS = 20

# Each stands for what a program that trusts a header would do: allocate, recurse, look elsewhere.
HOSTILE = {
    ".safetensors": [
        (2**63).to_bytes(8, "little") + b"{}",
        (10**8).to_bytes(8, "little") + b"{" * 1000,
        *(
            len(header).to_bytes(8, "little") + header
            for header in (
                b'{"weight":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,8]}}',
                b'{"weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,9223372036854775807]}}',
                b'{"weight":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}',
                b'{"weight":{"dtype":"X99","shape":[0],"data_offsets":[0,0]}}',
                b'{"__metadata__":{"epoch":"1e999"}}',
                b"[" * NEST,
            )
        ),
    ],
    ".parquet": [
        b"PAR1" + b"\x00" * 8 + (2**32 - 1).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\x19\xfc\xff\xff\xff\xff\x0f" * 9 + (63).to_bytes(4, "little") + b"PAR1",
        b"PAR1PAR1",
        b"PARE" + b"\x00" * 40 + b"PARE",
    ],
    ".json": [
        b"[" * NEST,
        b'{"a":' * NEST,
        b"1" * 100_000,
        b'{"counts": {"users": 1e400}}',
        b"\xff",
    ],
    ".jsonl": [b"[" * NEST, b'{"epoch": 1e400}\n', b"null\n", b"\x00" * 100],
    ".toml": [b"a=" + b"[" * NEST, b"a." * NEST + b"b=1", b"seed = " + b"9" * 5000, b"\x00"],
    ".png": [b"not a picture"],
}


def harms(name: str, content: bytes, other: bytes, random_: random.Random) -> Iterator[str]:
    """Do one harm after another to the file `name`, and say which."""
    path = Path(name)
    remove = partial(path.unlink, missing_ok=True)
    for _ in range(TRUNCATIONS):
        length = random_.randrange(len(content)) if content else 0
        path.write_bytes(content[:length])
        yield f"truncated to {length}"
    for _ in range(FLIPS):
        position, bit = random_.randrange(len(content)), random_.randrange(8)
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        yield f"bit {bit} of byte {position} flipped"
    path.write_bytes(other)
    yield "another's file"
    for number, header in enumerate(HOSTILE[path.suffix]):
        path.write_bytes(header)
        yield f"hostile header {number}"
    remove()
    yield "removed"
    remove()
    path.mkdir()
    yield "a directory"
    path.rmdir()
    os.mkfifo(path)
    yield "a pipe"
    remove()
    with path.open("wb") as file:
        file.truncate(HUGE)
    yield "a huge sparse file"
    path.write_bytes(content)


def read_run(directory: str) -> object:
    """All that is asked of a run: data, settings, history, metrics, weights, lists."""
    from ltocf.recommend.recommender import Recommender
    from ltocf.runs.run import Run

    run = Run.open(Path(directory))
    about = [repr(run.config), [record.loss for record in run.history()]]
    if not run.finished:
        state = run.load_state()
        return [*about, state and [state.epoch, float(state.tensors["model.weight"].sum())]]
    recommender = Recommender.load(directory)
    lists = recommender.recommend(recommender.dataset.split.train.user_ids.ids[:5].to_list(), 5)
    # Scores may differ in their last bits, as sums do that threads share.
    return [*about, run.metrics(), lists.drop("score").to_dicts()]


def read_data(directory: str) -> object:
    from ltocf.data.dataset import Dataset

    data = Dataset.load(directory)
    parts = [getattr(data.split, part).fingerprint for part in ("train", "valid", "test")]
    names = None if data.item_names is None else data.item_names.to_dicts()
    return [data.name, parts, names, data.split.train.item_ids.ids.to_list(), repr(data.origin)]


def damage_cache(directory: str, seed: int) -> tuple[str, dict[str, int]]:
    """All harms to a cached spectrum: no error, what was in it is computed again."""
    from ltocf.data.dataset import Dataset
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.graph.spectrum import singular_vectors

    graph, cache = BipartiteGraph(Dataset.load("data").split.train), Path(directory) / "spectra"
    expected = singular_vectors(graph, 4, cache=cache)
    (path,) = cache.iterdir()
    content = path.read_bytes()
    outcomes: Counter[str] = Counter()
    for harm in harms(str(path), content, content[::-1], random.Random(seed)):
        found = singular_vectors(graph, 4, cache=cache)
        assert (found.values - expected.values).abs().max() < 1e-5, harm
        outcomes["right"] += 1
        if path.is_file():  # computed and kept again
            path.unlink()
    return path.name, dict(outcomes)


READERS = {"run": read_run, "data": read_data}


def damage_file(kind: str, directory: str, name: str, others: str, seed: int) -> dict[str, int]:
    """All harms to one file of `directory`; counts of "right" and "named". Runs in the lab."""
    read, path = READERS[kind], Path(directory) / name
    expected = json.dumps(read(directory), default=str)
    content, other = path.read_bytes(), (Path(others) / name).read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: Counter[str] = Counter()
    for harm in harms(str(path), content, other, random.Random(seed)):
        started = time.monotonic()
        try:
            found = json.dumps(read(directory), default=str)
            assert found == expected, f"{path}: {harm}: another answer: {found[:300]}"
            outcomes["right"] += 1
        except LtocfError as error:
            whom = path.name, "digests.json", "data"
            known = any(each in str(error) for each in whom) and "\n" not in str(error)
            assert known, f"{path}: {harm}: {error}"
            outcomes["named"] += 1
        seconds = time.monotonic() - started
        assert seconds < SLOWEST_SECONDS, f"{path}: {harm}: took {seconds:.1f} seconds"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < MOST_MEGABYTES, f"{path}: took {grown} MB"
    return dict(outcomes)


def files_of(directory: Path) -> list[str]:
    return [
        str(file.relative_to(directory)) for file in sorted(directory.rglob("*")) if file.is_file()
    ]

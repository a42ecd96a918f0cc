"""Logs and settings that nobody wrote on purpose: mutations of those of the corpus, from a seed."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ltocf.errors import LtocfError

from .lab import Lab

BATCH = 60
SPICE = [b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"::", b"\t", b";", b"=", b"[", b"{", b"'", b"#"]
SPICE += [b"NaN", b"1e999", b"-", b"9" * 40, b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"PAR1"]
OPTIONS = [
    *({}, {}, {}, {"skip_bad": True}, {"header": False, "user": "1", "item": "2"}),
    *({"threshold": 3.0}, {"separator": "::"}, {"encoding": "utf-16"}, {"weight": "plays"}),
]
TOML = (
    b'dataset = "town"\nseed = 3\n[model]\nname = "ltocf"\ndim = 8\nsolver = "rk4"\n'
    b'[loss]\nname = "bpr"\n[train]\nepochs = 2\nlearning_rate = 0.01\nprotocol = "fixed"\n'
)


def mutate(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        start = chance.randrange(len(damaged) + 1)
        end = min(start + chance.choice([0, 0, 1, 2, 10]), len(damaged))
        piece = chance.choice([b"", bytes(damaged[start:end]) * 2, chance.choice(SPICE)])
        damaged[start:end] = piece
    return bytes(damaged)


def fuzz_logs(seed: int) -> int:
    """A batch of logs: pairs or one line of error. Runs in the lab."""
    from ltocf.data.ingest.read_log import read_log
    from tests.data.ingest.corpus import CASES

    chance = random.Random(seed)
    small = [
        case
        for case in CASES.values()
        if isinstance(case.content, bytes) and len(case.content) < 10_000
    ]
    with tempfile.TemporaryDirectory() as directory:
        for number in range(BATCH):
            case, options = chance.choice(small), chance.choice(OPTIONS)
            content = mutate(case.content, chance)
            if b"PAR1" in content[:4] and chance.random() < 0.9:
                continue  # a process of its own for each: dear
            path = Path(directory) / f"{number}-{case.name}"
            path.write_bytes(content)
            try:
                pairs = read_log(path, **options).interactions
                assert len(pairs) >= 1
            except LtocfError as error:
                assert "\n" not in str(error), (content, options, error)
            except BaseException:
                print(f"the input: {content!r} with {options}", file=sys.stderr)
                raise
    return BATCH


def fuzz_settings(seed: int) -> int:
    """A batch of settings: a configuration or one line of error. Runs in the lab."""
    from ltocf.models import check_settings
    from ltocf.runs.settings import make_config, read_config

    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "config.toml"
        for _ in range(BATCH * 10):
            content = mutate(TOML, chance)
            path.write_bytes(content)
            try:
                config = read_config(path)
                check_settings(config.model_name, config.model_options)
                words = content.decode(errors="replace").split("\n")
                make_config({}, chance.sample(words, 2))
            except LtocfError as error:
                assert "\n" not in str(error), (content, error)
            except BaseException:
                print(f"the input: {content!r}", file=sys.stderr)
                raise
    return BATCH * 10


def fuzz(seconds: float, seed: int) -> dict[str, int]:
    """As many batches as fit into the time."""
    counts: Counter[str] = Counter()
    started, chance = time.monotonic(), random.Random(seed)
    with tempfile.TemporaryDirectory() as directory, Lab(Path(directory)) as lab:
        while time.monotonic() - started < seconds:
            for name, kind in (("fuzz_logs", "logs"), ("fuzz_settings", "settings")):
                try:
                    done = lab.call(f"tests.faults.inputs:{name}", chance.randrange(10**9))
                    counts[f"fuzzed {kind}"] += done
                except AssertionError as failure:
                    counts["input failures"] += 1
                    print(f"FAILED {name}: {str(failure)[-700:]}", file=sys.stderr, flush=True)
    return dict(counts)

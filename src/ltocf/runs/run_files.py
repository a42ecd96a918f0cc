"""The files of a run: each is written atomically under a lock, and checked when it is read.

Weights and scorer are two of them: arrays that both need are stored only once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from ltocf.data.interactions import Interactions
from ltocf.errors import RunError
from ltocf.runs.versions import MARKER
from ltocf.scorers.scorer import Scorer
from ltocf.scorers.stored import pack, unpack
from ltocf.storage.arrays import Arrays, map_arrays, save_arrays
from ltocf.storage.digests import FILE as DIGESTS
from ltocf.storage.digests import Digests, Entry, entry_of, read_text
from ltocf.storage.files import replacing, writing

if TYPE_CHECKING:
    from torch import Tensor


WEIGHTS, SCORER = "weights.safetensors", "scorer.safetensors"
# If these files are the same, so are settings and data. That is how a run notices that another one
# has taken its place.
IDENTITY = (MARKER, f"data/{DIGESTS}")


class ReplacedError(RunError):
    """Another process has replaced this run by another one since it was opened."""


class RunFiles:
    """The files of a run directory; a ReplacedError once another run has taken its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = read_digests(path)
        self._written: dict[str, Entry] = {}  # by this object, under the lock

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes into the directory."""
        with writing(self.path, error=RunError):
            self.digests()
            yield

    def digests(self) -> Digests:
        digests = read_digests(self.path)
        if not digests.same_as(self.opened, *IDENTITY):
            raise ReplacedError(f"{self.path}: was replaced by another process; open it again")
        return digests

    def exists(self, name: str) -> bool:
        """Whether the file exists. One that is missing or altered, against its digest, is a
        RunError."""
        digests = self.digests()
        while (problem := digests.problem(name)) is not None:
            before, digests = digests, self.digests()
            if digests.same_as(before, name):  # no other process replaced it meanwhile
                raise self.damaged(name, problem)
        return (self.path / name).is_file()

    def put(self, name: str, write: Callable[[Path], object]) -> None:
        """Replace one file. Its digest is listed first, so that a crash leaves no mismatch."""
        with self.writing(), replacing(self.path / name, error=RunError) as temporary:
            write(temporary)
            self._announce(name, entry_of(temporary))

    def remove(self, name: str) -> None:
        with self.writing():
            self._announce(name, None)
            (self.path / name).unlink(missing_ok=True)

    def _announce(self, name: str, entry: Entry) -> None:
        """List `entry` as the file's digest, beside the one that it has until it is replaced."""
        digests = self.digests()
        now = [self._written[name]] if name in self._written else digests.allowed(name)
        digests.allow(name, *now, entry)
        self._write_digests(digests)
        self._written[name] = entry

    def allow_only_written(self) -> None:
        """List only the digests of what was written, once no file is going to be replaced."""
        with self.writing():
            digests = self.digests()
            for name, entry in self._written.items():
                digests.allow(name, entry)
            self._write_digests(digests)

    def _write_digests(self, digests: Digests) -> None:
        with replacing(self.path / DIGESTS, error=RunError) as temporary:
            temporary.write_text(digests.to_json(), encoding="utf-8")

    def put_text(self, name: str, text: str) -> None:
        self.put(name, lambda file: file.write_text(text, encoding="utf-8"))

    def text(self, name: str) -> str:
        """The text of a file that exists()."""
        try:
            return read_text(self.path / name)
        except (OSError, ValueError) as error:
            raise self.damaged(name, f"cannot be read ({error})") from None

    def put_arrays(self, name: str, arrays: Arrays, metadata: dict[str, str]) -> None:
        self.put(name, lambda file: save_arrays(file, arrays, metadata))

    def arrays(self, name: str) -> tuple[Arrays, dict[str, str]]:
        """The arrays, mapped, and the metadata of a file that exists()."""
        try:
            arrays, metadata = map_arrays(self.path / name)
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise self.damaged(name, f"cannot be read ({error})") from None
        self.digests()
        return arrays, metadata

    def damaged(self, name: str, what: str) -> RunError:
        """The error to raise for a damaged file: a ReplacedError if the run itself was replaced."""
        self.digests()
        return RunError(f"{self.path}: damaged run: {name} {what}; train it again")


def read_digests(path: Path) -> Digests:
    try:
        return Digests.read(path)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(
            f"{path}: damaged run: {DIGESTS} cannot be read ({error}); train it again"
        ) from None


def as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """The tensors as arrays, without copying those that are on the CPU."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in tensors.items()}


def write_weights(files: RunFiles, weights: Mapping[str, Tensor]) -> None:
    """Write the weights and remove a scorer that was made from other weights."""
    if (files.path / SCORER).exists():
        files.remove(SCORER)
    files.put_arrays(WEIGHTS, as_arrays(weights), {})


def write_scorer(files: RunFiles, scorer: Scorer, weights: Mapping[str, Tensor]) -> None:
    """Save the scorer beside the weights, if it can be saved."""
    if (parts := scorer.parts()) is not None:
        stored = pack(parts, as_arrays(weights))
        files.put_arrays(SCORER, stored.arrays, {"scorer": json.dumps(stored.description)})


def read_scorer(files: RunFiles, train: Interactions) -> Scorer:
    """The saved scorer of a model that has learned from `train`."""
    own, about = files.arrays(SCORER)
    weights = files.arrays(WEIGHTS)[0] if files.exists(WEIGHTS) else {}
    try:
        return unpack(json.loads(about["scorer"]), own, weights, train)
    except (KeyError, ValueError, TypeError):
        raise files.damaged(SCORER, "is not one that ltocf wrote") from None

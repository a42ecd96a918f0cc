"""Arrays in files that several processes can map: safetensors, each array at a cache line's start.

A mapped array is read from disk where it is touched, and every process that maps the file shares
those pages. A product of arrays that begin within a cache line may round otherwise than one of
arrays as NumPy allocates them, so the writer fills up the gaps with arrays of zeros, which the
format, without holes, asks for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

CACHE_LINE = 64  # bytes
GAP = "gap."  # how the names of the arrays between two others begin
NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint64": "U64", "uint32": "U32",
}  # fmt: skip
DTYPES = {short: np.dtype(name) for name, short in NAMES.items()}

Arrays = dict[str, NDArray[Any]]


def save_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file; any reader of that format takes it."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, array in arrays.items():
        offset = _describe(header, name, NAMES[array.dtype.name], array.shape, offset, array.nbytes)
        if gap := -offset % CACHE_LINE:
            offset = _describe(header, f"{GAP}{offset}", "U8", (gap,), offset, gap)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % CACHE_LINE)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(bytes(-array.nbytes % CACHE_LINE))


def _describe(
    header: dict[str, Any], name: str, dtype: str, shape: tuple[int, ...], start: int, size: int
) -> int:
    header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, start + size]}
    return start + size


def map_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a safetensors file, mapped, and its metadata. What is written into them stays
    in this process. A file that is none is a SafetensorError."""
    with safe_open(path, "np") as checked:  # that the header is whole and fits the file's size
        metadata = checked.metadata() or {}
    whole = np.memmap(path, np.uint8, mode="c").view(np.ndarray)
    start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = json.loads(whole[8:start].tobytes())
    arrays = {}
    for name, about in header.items():
        if name != "__metadata__" and not name.startswith(GAP):
            first, last = about["data_offsets"]
            flat = whole[start + first : start + last]
            arrays[name] = flat.view(DTYPES[about["dtype"]]).reshape(about["shape"])
    return arrays, metadata

"""A scorer in the files of a run: what it is made of, by name, and no array twice.

The description tells each array's place: in the scorer's own file, or as rows of one that the
run's weights hold anyway. A closed form's fitted arrays are its scorer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ltocf.data.interactions import Interactions
from ltocf.scorers.blend import BlendScorer
from ltocf.scorers.scorer import Parts, Scorer
from ltocf.storage.arrays import Arrays

# The file and the class of each kind; imported when it is asked for, as some need compiled kernels.
KINDS = {
    "dot products": ("dot", "DotScorer"),
    "item-item weights": ("item_item", "ItemItemScorer"),
    "item filter": ("item_filter", "ItemFilterScorer"),
    "ease": ("item_item", "EASEScorer"),
    "powered similarities": ("item_item", "PoweredScorer"),
    "attributes": ("attributes", "AttributesScorer"),
    "solved vectors": ("solved_vectors", "SolvedVectorsScorer"),
    "popularity": ("constant", "PopularityScorer"),
    "random": ("constant", "RandomScorer"),
    "autoencoder": ("networks", "AutoencoderScorer"),
    "neumf": ("networks", "NeuMFScorer"),
    "memory network": ("memory_network", "MemoryScorer"),
}


class StoredScorer(NamedTuple):
    description: dict[str, Any]  # plain values, as JSON has them
    arrays: Arrays  # those that the weights do not hold


def pack(parts: Parts, weights: Mapping[str, NDArray[Any]]) -> StoredScorer:
    """How a file keeps a scorer beside these weights."""
    own: Arrays = {}

    def describe(parts: Parts, prefix: str) -> dict[str, Any]:
        places: dict[str, Any] = {}
        for name, array in parts.arrays.items():
            place = _rows_of(array, weights)
            if place is None:
                own[prefix + name] = array
                place = [prefix + name]
            places[name] = place
        members = [
            describe(member, f"{prefix}{number}.") for number, member in enumerate(parts.members)
        ]
        return {"kind": parts.kind, "arrays": places, "values": parts.values, "members": members}

    return StoredScorer(describe(parts, ""), own)


def unpack(
    description: Mapping[str, Any],
    own: Mapping[str, NDArray[Any]],
    weights: Mapping[str, NDArray[Any]],
    train: Interactions,
) -> Scorer:
    """The scorer that `pack` described; a KeyError if an array is not there."""
    members = [unpack(member, own, weights, train) for member in description["members"]]
    if description["kind"] == BlendScorer.kind:
        return BlendScorer(members, description["values"]["weights"])
    arrays = {
        name: own[place[0]] if len(place) == 1 else weights[place[0]][place[1] : place[2]]
        for name, place in description["arrays"].items()
    }
    parts = Parts(description["kind"], arrays, dict(description["values"]))
    file, name = KINDS[parts.kind]
    scorer: Scorer = getattr(import_module(f"ltocf.scorers.{file}"), name).of_parts(parts, train)
    return scorer


def _rows_of(array: NDArray[Any], weights: Mapping[str, NDArray[Any]]) -> list[Any] | None:
    """The name, first and last row of the weights whose memory the array is, if there are such."""
    for name, whole in weights.items():
        same = array.dtype == whole.dtype and array.shape[1:] == whole.shape[1:]
        if not array.ndim or not whole.ndim:
            continue  # a number is stored where it is used
        if not (same and array.flags.c_contiguous and whole.flags.c_contiguous and array.size):
            continue
        first, rest = divmod(array.ctypes.data - whole.ctypes.data, array.nbytes // len(array))
        if rest == 0 and first >= 0 and first + len(array) <= len(whole):
            return [name, first, first + len(array)]
    return None

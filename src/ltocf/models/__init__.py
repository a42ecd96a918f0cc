"""Every model by the name that `--model` takes. A new one is a file and a line here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ltocf.config import validated
from ltocf.errors import ConfigError

if TYPE_CHECKING:
    from ltocf.graph.bipartite import BipartiteGraph
    from ltocf.models.base import Model, ModelConfig

# The class of each file; a file is imported when its model is asked for, so that a wrong name is
# refused without waiting for torch.
CLASSES = {
    "ltocf": "LTOCF",
    "lightgcn": "LightGCN",
    "mf": "MF",
    "neumf": "NeuMF",
    "cmn": "CMN",
    "hoprec": "HOPRec",
    "gcmc": "GCMC",
    "pinsage": "PinSage",
    "multvae": "MultVAE",
    "grmf": "GRMF",
    "ngcf": "NGCF",
    "lrgccf": "LRGCCF",
    "hmlet": "HMLET",
    "gfcf": "GFCF",
    "bspm": "BSPM",
    "chebycf": "ChebyCF",
    "turbocf": "TurboCF",
    "svdae": "SVDAE",
    "ease": "EASE",
    "sparse_ease": "SparseEASE",
    "rp3beta": "RP3Beta",
    "itemknn": "ItemKNN",
    "transitions": "Transitions",
    "ials": "IALS",
    "attributes": "Attributes",
    "popularity": "Popularity",
    "random": "Random",
    "blend": "Blend",
}


class Models(MutableMapping[str, "type[Model]"]):
    """The model classes by name: ours by their files, and those that somebody adds."""

    def __init__(self) -> None:
        self._loaded: dict[str, type[Model] | None] = dict.fromkeys(CLASSES)

    def __getitem__(self, name: str) -> type[Model]:
        kind = self._loaded[name]
        if kind is None:
            kind = self._loaded[name] = getattr(
                import_module(f"ltocf.models.{name}"), CLASSES[name]
            )
        return kind

    def __setitem__(self, name: str, kind: type[Model]) -> None:
        self._loaded[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


MODELS = Models()


def summary(name: str) -> str:
    """The first line of a model's file. It is read, not imported, to avoid loading torch."""
    text = files(__name__).joinpath(f"{name}.py").read_text(encoding="utf-8")
    return text.partition('"""')[2].partition('"""')[0].splitlines()[0]


def usual_settings(name: str) -> dict[str, Any]:
    """The settings of the model called `name` and their defaults, as plain values, without torch:
    from a list that tools/model_settings.py writes."""
    refuse_unknown(name)
    listed = json.loads(files(__name__).joinpath("settings.json").read_text(encoding="utf-8"))
    known: dict[str, Any] | None = listed.get(name)
    if known is None:  # a model that somebody has added
        known = check_settings(name, {}).model_dump(mode="json")
    return known


def refuse_unknown(name: str) -> None:
    if name not in MODELS:
        raise ConfigError(f"unknown model {name!r}; choose one of: {', '.join(MODELS)}, auto")


def check_settings(name: str, options: Mapping[str, Any]) -> ModelConfig:
    """The settings of the model called `name`, or a ConfigError that says what is wrong."""
    refuse_unknown(name)
    return validated(MODELS[name].Config, options, f"the settings of model {name!r}")


def build_model(graph: BipartiteGraph, name: str, options: Mapping[str, Any]) -> Model:
    """The model called `name` with these settings, not yet initialised."""
    config = check_settings(name, options)
    return MODELS[name](graph, config)

"""Every model by the name that `--model` takes. A new one is a file and a line here."""

from collections.abc import Mapping
from typing import Any

from ltocf.config import validated
from ltocf.errors import ConfigError
from ltocf.graph import BipartiteGraph
from ltocf.models.base import Model
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.ease import EASE
from ltocf.models.gfcf import GFCF
from ltocf.models.itemknn import ItemKNN
from ltocf.models.lightgcn import LightGCN
from ltocf.models.ltocf import LTOCF
from ltocf.models.mf import MF
from ltocf.models.popularity import Popularity
from ltocf.models.rp3beta import RP3Beta
from ltocf.models.sansa import SANSA
from ltocf.models.turbocf import TurboCF

MODELS: dict[str, type[Model]] = {
    "ltocf": LTOCF,
    "lightgcn": LightGCN,
    "mf": MF,
    "popularity": Popularity,
    "gfcf": GFCF,
    "bspm": BSPM,
    "chebycf": ChebyCF,
    "turbocf": TurboCF,
    "ease": EASE,
    "sansa": SANSA,
    "rp3beta": RP3Beta,
    "itemknn": ItemKNN,
}


def build_model(graph: BipartiteGraph, name: str, options: Mapping[str, Any]) -> Model:
    """The model called `name` with these settings, not yet initialised."""
    if name not in MODELS:
        raise ConfigError(f"unknown model {name!r}; choose one of: {', '.join(MODELS)}")
    kind = MODELS[name]
    return kind(graph, validated(kind.Config, options, f"the settings of model {name!r}"))

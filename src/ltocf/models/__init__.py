"""Every model by the name that `--model` takes. A new one is a file and a line here."""

from collections.abc import Mapping
from typing import Any

from ltocf.config import validated
from ltocf.errors import ConfigError
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models.base import Model, ModelConfig
from ltocf.models.blend import Blend
from ltocf.models.bspm import BSPM
from ltocf.models.chebycf import ChebyCF
from ltocf.models.cmn import CMN
from ltocf.models.ease import EASE
from ltocf.models.gcmc import GCMC
from ltocf.models.gfcf import GFCF
from ltocf.models.grmf import GRMF
from ltocf.models.hoprec import HOPRec
from ltocf.models.itemknn import ItemKNN
from ltocf.models.lightgcn import LightGCN
from ltocf.models.lrgccf import LRGCCF
from ltocf.models.ltocf import LTOCF
from ltocf.models.mf import MF
from ltocf.models.multvae import MultVAE
from ltocf.models.neumf import NeuMF
from ltocf.models.ngcf import NGCF
from ltocf.models.pinsage import PinSage
from ltocf.models.popularity import Popularity
from ltocf.models.random import Random
from ltocf.models.rp3beta import RP3Beta
from ltocf.models.sparse_ease import SparseEASE
from ltocf.models.turbocf import TurboCF

MODELS: dict[str, type[Model]] = {
    "ltocf": LTOCF,
    "lightgcn": LightGCN,
    "mf": MF,
    "neumf": NeuMF,
    "cmn": CMN,
    "hoprec": HOPRec,
    "gcmc": GCMC,
    "pinsage": PinSage,
    "multvae": MultVAE,
    "grmf": GRMF,
    "ngcf": NGCF,
    "lrgccf": LRGCCF,
    "gfcf": GFCF,
    "bspm": BSPM,
    "chebycf": ChebyCF,
    "turbocf": TurboCF,
    "ease": EASE,
    "sparse_ease": SparseEASE,
    "rp3beta": RP3Beta,
    "itemknn": ItemKNN,
    "popularity": Popularity,
    "random": Random,
    "blend": Blend,
}


OLD_NAMES = {"sansa": "sparse_ease"}  # of runs and configs that were written before a renaming


def current_name(name: str) -> str:
    return OLD_NAMES.get(name, name)


def check_settings(name: str, options: Mapping[str, Any]) -> ModelConfig:
    """The settings of the model called `name`, or a ConfigError that says what is wrong."""
    name = current_name(name)
    if name not in MODELS:
        raise ConfigError(f"unknown model {name!r}; choose one of: {', '.join(MODELS)}")
    return validated(MODELS[name].Config, options, f"the settings of model {name!r}")


def trains(name: str, options: Mapping[str, Any]) -> bool:
    """Whether such a model has anything to train; the others are solved."""
    return MODELS[current_name(name)].trains(check_settings(name, options))


def build_model(graph: BipartiteGraph, name: str, options: Mapping[str, Any]) -> Model:
    """The model called `name` with these settings, not yet initialised."""
    config = check_settings(name, options)
    return MODELS[current_name(name)](graph, config)

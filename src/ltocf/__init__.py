"""Learnable-time ODE-based collaborative filtering.

`from ltocf import Recommender` is the whole library for most uses; docs/api.md shows it and the
rest of what stands in `__all__`, which is the public interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ltocf.data.ingest.prepare import prepare
    from ltocf.data.sources.catalog import load_dataset
    from ltocf.errors import ConfigError, DataError, LtocfError, RunError
    from ltocf.recommend.bulk import recommend_all
    from ltocf.recommend.export import export
    from ltocf.recommend.recommender import Recommender
    from ltocf.runs.comparison import compare_runs
    from ltocf.runs.refit import refit_run
    from ltocf.runs.update import update_run
    from ltocf.search.tuning.tune import tune

__all__ = [
    "ConfigError",
    "DataError",
    "LtocfError",
    "Recommender",
    "RunError",
    "__version__",
    "compare_runs",
    "export",
    "load_dataset",
    "prepare",
    "recommend_all",
    "refit_run",
    "tune",
    "update_run",
]
__version__ = "0.1.0"

# Imported when they are asked for, so that `ltocf --help` need not wait for torch.
_MODULES = {
    "ConfigError": "ltocf.errors",
    "DataError": "ltocf.errors",
    "LtocfError": "ltocf.errors",
    "Recommender": "ltocf.recommend.recommender",
    "RunError": "ltocf.errors",
    "compare_runs": "ltocf.runs.comparison",
    "export": "ltocf.recommend.export",
    "load_dataset": "ltocf.data.sources.catalog",
    "prepare": "ltocf.data.ingest.prepare",
    "recommend_all": "ltocf.recommend.bulk",
    "refit_run": "ltocf.runs.refit",
    "tune": "ltocf.search.tuning.tune",
    "update_run": "ltocf.runs.update",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'ltocf' has no attribute {name!r}")

"""Learnable-time ODE-based collaborative filtering.

`from ltocf import Recommender` is the whole library for most uses; docs/api.md shows it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ltocf.recommend.recommender import Recommender

__all__ = ["Recommender", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Imported when it is asked for, so that `ltocf --help` need not wait for torch.
    if name == "Recommender":
        from ltocf.recommend.recommender import Recommender

        return Recommender
    raise AttributeError(f"module 'ltocf' has no attribute {name!r}")

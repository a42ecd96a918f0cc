"""A new ODE in thirty lines

LT-OCF's right-hand side is linear and does not depend on time, which is why its solver can run on
the spectrum. Any other right-hand side can run on the embeddings themselves, by torchdiffeq: that
is slower, and differentiable all the same. Here the graph's influence fades as time goes by, at a
rate that is learned: `dE/dt = exp(-r t) A E`.
"""

# %%
import polars as pl
import torch
from pydantic import Field
from torch import Tensor, nn
from torchdiffeq import odeint

from ltocf import Recommender
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.models import MODELS
from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel


class FadingConfig(EmbeddingConfig, frozen=True):
    end_time: float = Field(3.0, gt=0)  # K
    steps: int = Field(3, ge=1)  # of RK4


class Fading(EmbeddingModel):
    """The state at K of dE/dt = exp(-r t) A E, with r learned beside the embeddings."""

    Config = FadingConfig
    config: FadingConfig

    def __init__(self, graph: BipartiteGraph, config: FadingConfig) -> None:
        super().__init__(graph, config)
        self.rate = nn.Parameter(torch.tensor(0.1))

    def embeddings(self) -> Tensor:
        end, step = self.config.end_time, self.config.end_time / self.config.steps
        states = odeint(
            lambda t, E: torch.exp(-self.rate * t) * (self.graph @ E),
            self.weight,
            torch.tensor([0.0, end]),
            method="rk4",
            options={"step_size": step},
        )
        return states[-1]


MODELS["fading"] = Fading  # in the package: a line in the literal dict of models/__init__.py

# %% [markdown]
# ## A known answer
# With a rate of 0 the ODE is LT-OCF's, and its state at K is `exp(K A) E`: on a graph of one user
# and one item, whose eigenvalues are 1 and -1, `cosh(K)` times one's own vector and `sinh(K)`
# times the other's.

# %%
tiny = Recommender("fading", dim=2, epochs=0, steps=30).fit(
    pl.DataFrame({"user": ["ann"], "item": ["tea"]})
)
model = tiny.model
with torch.no_grad():
    model.rate.zero_()
    user, item = model.embeddings()
    own, other = model.weight
    expected = torch.cosh(torch.tensor(3.0)) * own + torch.sinh(torch.tensor(3.0)) * other
    print(user.tolist(), expected.tolist())
    assert torch.allclose(user, expected, rtol=1e-3)

# %% [markdown]
# ## Train with it
# Everything else works as for any other model: splitting, negatives, validation, lists.

# %%
recommender = Recommender("fading", dim=16, epochs=3).fit("town")
print({name: round(value, 4) for name, value in recommender.evaluate(ks=[20]).items()})
print(f"the learned rate is {float(recommender.model.rate.detach()):.3f}")

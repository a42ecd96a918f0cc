"""A new ODE solver in a few lines

The ODE is linear, so a one-step solver is known by one function: by what it multiplies a scalar in
a step of `z = step * x`. Heun's third-order method is `1 + z + z²/2 + z³/6`.
"""

# %%
import torch
from torch import Tensor

from ltocf import Recommender
from ltocf.ode.one_step import OneStepSolver
from ltocf.ode.solvers import SOLVERS, find_solver


def heun3(z: Tensor) -> Tensor:
    return 1 + z * (1 + z / 2 * (1 + z / 3))


# In the package: a line in the literal dict of ode/solvers.py.
SOLVERS["heun3"] = OneStepSolver(growth=heun3)

# %% [markdown]
# ## Is it of third order?
# Halving the step must divide the error against the exact exponential by about eight.

# %%
x = torch.linspace(-1, 1, 9, dtype=torch.float64)
times = torch.tensor([0.0, 3.0], dtype=torch.float64)
errors = []
for steps in (16, 32, 64):
    end = find_solver("heun3", steps=steps).states(x, times, "residual")[-1]
    errors.append(float((end - (3 * x).exp()).abs().max()))
    print(f"{steps:3} steps: error {errors[-1]:.2e}")
assert 7 < errors[0] / errors[1] < 9 and 7 < errors[1] / errors[2] < 9

# %% [markdown]
# ## Train with it
# Nothing else has to know of it: the response becomes Chebyshev coefficients, and the filter and
# its gradient follow.

# %%
recommender = Recommender("ltocf", solver="heun3", dim=16, epochs=3).fit("town")
print({name: round(value, 4) for name, value in recommender.evaluate(ks=[20]).items()})

"""A walk through the spectrum: what the times do

LT-OCF integrates an ODE on the graph. Whatever the solver does, it multiplies each eigenvector of
the graph by a number `h(x)` that depends on its eigenvalue `x` alone. This is that function.
"""

# %%
import tempfile
from pathlib import Path

import torch

from ltocf import Recommender
from ltocf.data.sources.town import make_town
from ltocf.graph.bipartite import BipartiteGraph
from ltocf.graph.spectrum import singular_vectors
from ltocf.ode.solvers import find_solver
from ltocf.pictures.responses import draw_responses, solver_responses

# %% [markdown]
# ## Eigenvalues
# Those of the normalised adjacency lie in [-1, 1]: 1 is what everybody shares, small ones are noise
# and detail. A few large ones and a long tail is what makes recommendation possible.

# %%
dataset = make_town(people=300, places=200, seed=3).dataset
values = singular_vectors(BipartiteGraph(dataset.split.train), 12).values
print("the twelve largest:", " ".join(f"{value:.2f}" for value in values))
assert abs(float(values[0]) - 1) < 1e-4

# %% [markdown]
# ## Solvers
# `h(1) / h(x)` says how much more a model trusts what is shared than what is detail. A longer end
# time K trusts it more.

# %%
x = torch.tensor([0.2, 0.5, 1.0], dtype=torch.float64)
for end in (1.0, 2.0, 4.0, 6.0):
    times = torch.linspace(0, end, 5, dtype=torch.float64)
    h = find_solver("rk4").states(x, times, "linear").mean(0)
    print(f"K = {end}: h(1)/h(0.5) = {h[2] / h[1]:5.2f}   h(1)/h(0.2) = {h[2] / h[0]:5.2f}")

# %% [markdown]
# ## A picture of each, and of a trained model

# %%
folder = Path(tempfile.mkdtemp())
draw_responses(folder / "solvers.png", solver_responses("linear"), relative=True)
recommender = Recommender("ltocf", dim=16, epochs=10).fit(dataset)
draw_responses(folder / "trained.png", recommender.model.responses(), relative=True)
print("the times the ODE is read at:", recommender.model.extracted_times())
print("pictures in", folder)

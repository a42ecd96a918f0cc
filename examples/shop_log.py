"""A shop's log, with times and recency

What people bought and when, no ratings. Tastes move on: what somebody touched last says most about
what they will touch next, and one setting, `recency`, says how much.
"""

# %%
import numpy as np
import polars as pl

from ltocf import Recommender
from ltocf.data.dataset import Dataset
from ltocf.data.ingest.read_log import read_log
from ltocf.data.splits import split_pairs

# %% [markdown]
# ## A made-up log
# 400 customers, 120 products in six departments. Each customer moves from one department to the
# next about half-way through their purchases.

# %%
random = np.random.default_rng(1)
rows = []
for customer in range(400):
    first, second = random.choice(6, 2, replace=False)
    for step in range(12):
        department = first if step < 6 else second
        product = department * 20 + random.integers(20)
        rows.append((f"c{customer}", f"p{product}", 1_700_000_000 + step * 86_400 + customer))
log = pl.DataFrame(rows, schema=["customer", "product", "time"], orient="row")

# %% [markdown]
# ## What comes next?
# The last purchase of everybody is held out. The same closed form twice, once with a history
# weighed by recency.

# %%
dataset = Dataset("shop", split_pairs(read_log(log).interactions, "leave-last-out"))
found = {}
for recency in (0.0, 1.0):
    model = Recommender("gfcf", rank=32, recency=recency).fit(dataset)
    found[recency] = model.evaluate(ks=[20])["recall@20"]
    print(f"recency {recency}: Recall@20 {found[recency]:.3f}")
assert found[1.0] > found[0.0]

# %% [markdown]
# ## Somebody new
# The latest item comes last. The list follows the latest department.

# %%
print(model.recommend_new(["p3", "p7", "p15", "p101", "p110"], k=5))

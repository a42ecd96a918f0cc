"""MovieLens-style ratings, with titles

From `ratings.dat` and `movies.dat`, as MovieLens ships them, to films with reasons. The files here
are made up in their exact format, so that the script runs anywhere; put the real ones in their
place.
"""

# %%
import tempfile
from pathlib import Path

import numpy as np

from ltocf import Recommender
from ltocf.data.ingest.prepare import Recipe, prepare

# %% [markdown]
# ## The files
# `UserID::MovieID::Rating::Timestamp`, no header, and titles in Latin-1. Two kinds of people: some
# like comedies, some like westerns, and everybody has seen a little of the other kind.

# %%
folder = Path(tempfile.mkdtemp())
random = np.random.default_rng(0)
kinds = ["Comedy", "Western"]
movies = [f"{n}::{kinds[n % 2]} No. {n} (19{60 + n})::{kinds[n % 2]}" for n in range(1, 31)]
(folder / "movies.dat").write_text("\n".join([*movies, "31::Amélie (2001)::Comedy"]), "latin-1")
ratings = []
for user in range(1, 81):
    for movie in random.choice(np.arange(1, 32), 14, replace=False):
        likes = (movie % 2) == (user % 2) or movie == 31
        stars = random.integers(4, 6) if likes else random.integers(1, 4)
        ratings.append(f"{user}::{movie}::{stars}::{978300000 + len(ratings)}")
(folder / "ratings.dat").write_text("\n".join(ratings))

# %% [markdown]
# ## A data set
# Four stars and more count as a like. Lower ratings never train, but what somebody has seen is not
# recommended to them.

# %%
report = prepare(folder, folder / "films", Recipe(threshold=4))
print("\n".join(report.lines()))

# %% [markdown]
# ## Train, measure, recommend, explain

# %%
recommender = Recommender("ltocf", dim=16, epochs=15).fit(folder / "films")
print({name: round(value, 3) for name, value in recommender.evaluate().items() if "@10" in name})
best = recommender.recommend(1, k=5)
print(best)
assert sum("Western" in title for title in best["title"]) >= 4  # user 1 likes odd numbers
print(recommender.explain(1, best["item"][0]).sentence())

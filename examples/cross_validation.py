"""Cross-validation in the manner of scikit-learn, and a comparison with implicit

Five folds of the built-in town, the same folds for each model. `implicit` (`pip install implicit`)
is compared where it is installed.
"""

# %%
import numpy as np
from scipy.sparse import csr_array

from ltocf import Recommender
from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.town import make_town
from ltocf.data.splits import Split
from ltocf.ranking.metrics import list_metrics

FOLDS = 3
town = make_town(people=300, places=200, seed=3).dataset.split.seen
fold_of = np.random.default_rng(0).integers(0, FOLDS, len(town))

# %% [markdown]
# ## Folds
# A fold's pairs are test, the others train. Items keep their ids, so that everybody ranks the same
# candidates.


# %%
def split(fold: int) -> Dataset:
    train, test = town.select(fold_of != fold), town.select(fold_of == fold)
    return Dataset(f"fold {fold}", Split(train, train.select(np.zeros(len(train), bool)), test))


def ours(name: str, fold: int, **settings: object) -> float:
    return Recommender(name, **settings).fit(split(fold)).evaluate(ks=[20])["recall@20"]


# %% [markdown]
# ## Ours

# %%
results = {
    "popularity": [ours("popularity", fold) for fold in range(FOLDS)],
    "ease": [ours("ease", fold, l2=20.0) for fold in range(FOLDS)],
    "ltocf": [ours("ltocf", fold, dim=32, epochs=10) for fold in range(FOLDS)],
}

# %% [markdown]
# ## implicit's ALS, on the same folds and by the same metric


# %%
def matrix(pairs: Interactions) -> csr_array:
    ones = np.ones(len(pairs), np.float32)
    return csr_array((ones, pairs.items, pairs.indptr), shape=(pairs.n_users, pairs.n_items))


def theirs(fold: int) -> float:
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    data = split(fold).split
    model = AlternatingLeastSquares(factors=32, iterations=15, random_state=0, num_threads=1)
    model.fit(csr_matrix(matrix(data.train)), show_progress=False)
    users = np.flatnonzero(data.test.user_degrees)
    listed, _ = model.recommend(users, csr_matrix(matrix(data.train))[users], N=20)
    has = matrix(data.test).toarray()[users].astype(bool)
    hits = np.take_along_axis(has, listed, axis=1)
    return float(list_metrics(hits, data.test.user_degrees[users], [20])["recall@20"].mean())


try:
    results["implicit's ALS"] = [theirs(fold) for fold in range(FOLDS)]
except ImportError:
    print("implicit is not installed: its row is left out")

# %%
for name, values in results.items():
    print(f"{name:15} Recall@20 {np.mean(values):.3f} ± {np.std(values):.3f}")
assert np.mean(results["ltocf"]) > np.mean(results["popularity"])

"""A shop's afternoon: catalogue, kinds of events, rules, a mailing

A small shop of teas, coffees and ware has a catalogue that changes by the hour, events that do not
mean the same, items nobody has touched yet, and rules about what may be shown.
"""

# %%
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from ltocf import Recommender
from ltocf.data.catalogue import ItemChange
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.rules import Rules

# %% [markdown]
# ## The catalogue
# A hundred products with a category, tags, a price, the day they came and whether they are in
# stock. The last ten came this week: nobody has bought them.

# %%
random = np.random.default_rng(7)
TODAY = datetime(2024, 6, 14)
CATEGORIES = {
    "tea": ["green", "black", "herbal", "vegan"],
    "coffee": ["dark", "light", "decaf", "vegan"],
    "ware": ["clay", "glass", "steel"],
    "sweets": ["vegan", "chocolate", "nuts"],
}
products = []
for number in range(100):
    category = list(CATEGORIES)[number % 4]
    first, second = random.choice(CATEGORIES[category], 2, replace=False)
    days = random.integers(0, 7) if number >= 90 else random.integers(60, 600)
    products.append(
        {
            "product": f"p{number:03}",
            "name": f"{first.title()} {category} no. {number}",
            "category": category,
            "tags": f"{first}|{second}",
            "price": round(float(random.gamma(4, 4)), 2),
            "added": (TODAY - timedelta(days=int(days))).strftime("%Y-%m-%d"),
            "in_stock": bool(random.random() > 0.05),
        }
    )
catalogue = pl.DataFrame(products)
print(catalogue.head(3))

# %% [markdown]
# ## The log
# Customers like one or two tags. A purchase says more than a view: kinds become weights.

# %%
FLAVOURS = [tag for tags in CATEGORIES.values() for tag in tags]
WEIGHTS = {"view": 1, "cart": 3, "purchase": 5}
tags = catalogue["tags"].str.split("|").to_list()
old = catalogue["product"][:90].to_list()
rows = []
for customer in range(250):
    liked = set(random.choice(FLAVOURS, 2))
    appeal = np.array([1 + 8 * len(liked & set(of)) for of in tags[:90]], dtype=float)
    chosen = random.choice(90, size=10, replace=False, p=appeal / appeal.sum())
    for step, product in enumerate(chosen):
        kind = random.choice(list(WEIGHTS), p=[0.6, 0.15, 0.25])
        moment = TODAY - timedelta(days=int(60 - 6 * step), minutes=int(random.integers(600)))
        rows.append((f"c{customer:03}", old[product], kind, moment))
log = pl.DataFrame(rows, schema=["customer", "product", "kind", "time"], orient="row")
log = log.with_columns(weight=pl.col("kind").replace_strict(WEIGHTS))

# %% [markdown]
# ## Learn
# Every product of the catalogue is an item, touched or not. `attributes` scores items by their
# tags, so that those of this week are recommended too.

# %%
shop = Recommender("attributes").fit(
    log, user="customer", item="product", time="time", weight="weight", items=catalogue
)
print(shop.dataset.catalogue.kinds)

# %% [markdown]
# ## Rules
# Two categories, not too dear, and a little more for what is new. `moved_by` says which items the
# boost concerned. What is out of stock is in no list. Nobody has bought the first two: their reason
# is what they share with something that the customer has.

# %%
rules = Rules.parse(["category=tea|coffee", "price<25"], boost="new:3", at_most="3:category")
found = shop.recommend("c014", 5, rules=rules)
print(found.select("rank", "item", "name", "price", "score", "moved_by"))
for product in found["item"][:2]:
    print(product, shop.explain("c014", product).sentence())
assert set(found["category"]) <= {"tea", "coffee"}
assert (found["price"] < 25).all() and found["in_stock"].all()

# %% [markdown]
# Some variety, and one product that everybody should see first.

# %%
varied = Rules.parse(diversity=0.4, pin=["p091"])
print(shop.recommend("c014", 5, rules=varied).select("rank", "item", "name", "category"))

# %% [markdown]
# ## Boards
# What everybody sees: popular within a month, trending, and new.

# %%
print(shop.board("popular", 3, window=timedelta(days=30)).select("item", "name", "touches"))
print(shop.board("new", 3).select("item", "name", "arrived"))

# %% [markdown]
# ## The catalogue changes
# A product sells out, another comes. A catalogue never changes: changes make another one, in which
# old products keep their rows. The service does the same for `PATCH /items/p001`.

# %%
changes = [
    ItemChange("p001", {"in_stock": False}),
    ItemChange("p200", {"name": "Glass pot", "category": "ware", "tags": ["glass"], "price": 30}),
]
later = shop.with_items(changes)
catalogue = later.dataset.catalogue
print(len(catalogue), catalogue.about(len(catalogue) - 1))
ware = Rules.parse("category=ware")
assert "p001" not in later.recommend("c014", 100)["item"]
assert "p200" in later.recommend("c014", 30, rules=ware)["item"]
print(later.explain_new(["p014", "p022"], "p200").sentence())

# %% [markdown]
# ## A mailing
# Everybody's three best products of what is in stock, as a CSV for the mailing program.

# %%
mailing = Rules.parse(["price<40"], at_most="2:category")
report = recommend_all(shop, Path("mailing.csv"), 3, rules=mailing, overwrite=True)
print(f"{report.rows} rows for {report.users} customers")
print(pl.read_csv("mailing.csv").head(3).select("user", "rank", "item", "name", "tags"))
assert report.rows == 3 * report.users

"""The small world of the trials: a log, new rows for it, and commands on them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ltocf.data.sources.town import make_town

TRAIN = ("model=ltocf", "dim=8", "epochs=3", "negatives=4", "time_every=1", "batch_size=64")
PUBLISHED = "gowalla"  # whose files are small ones of ours in these processes


def write_logs(directory: Path) -> None:
    """log.csv, and new.csv with rows that it does not have; published/ as a download has it."""
    town = make_town(people=120, places=90, seed=1)
    log = town.log().sort("person", "place")
    fresh = log.gather_every(17)
    log.join(fresh, on=["person", "place"], how="anti").write_csv(directory / "log.csv")
    fresh.write_csv(directory / "new.csv")
    (directory / "published" / PUBLISHED).mkdir(parents=True)
    for name, text in TEXTS.items():
        (directory / "published" / PUBLISHED / name).write_text(text)


TEXTS = {
    "train.txt": "".join(f"{u} {u} {u + 1} {u + 2}\n" for u in range(3000)),
    "test.txt": "".join(f"{u} {(u + 3) % 3000}\n" for u in range(3000)),
}


def shrink() -> None:
    """Make what is large small, so that there is more than one of each."""
    from ltocf.data.sources import published
    from ltocf.graph import spectrum
    from ltocf.recommend import bulk

    bulk.PART_USERS = 30
    spectrum.DENSE_SIDE = 10
    sums = [
        hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() for text in TEXTS.values()
    ]
    published.PUBLISHED[PUBLISHED] = published.PublishedSet(
        (sums[0], sums[1]), users=3000, items=3002, train=9000, test=3000
    )


def fetch() -> str:
    """Download the published set if it is not in the cache."""
    from ltocf.data.sources.catalog import find_published

    return str(find_published(PUBLISHED))

"""Updates from events: events become training data. The new model replaces the old one only if it
ranks the events after them as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltocf.data.dataset import Dataset
from ltocf.data.ingest.cells.kinds import HIDE
from ltocf.data.ingest.growth import Growth, enlarge, read_more
from ltocf.errors import DataError, RunError
from ltocf.progress import Progress, silent
from ltocf.recommend.recommender import Recommender
from ltocf.runs.forgetting import Forgotten, forget_people
from ltocf.runs.run import Run
from ltocf.runs.update import EPOCHS, store_update, updating, warm_start
from ltocf.runs.versions import root_of
from ltocf.service.live_items import fitting
from ltocf.service.live_quality import HIT, ranks_before
from ltocf.service.served_model import LEARNED, ServedModel
from ltocf.service.store.events import Event, EventStore
from ltocf.service.store.items import item_changes
from ltocf.service.store.updates import record_update

# Key in a data set's origin: number of the last change of items that it contains.
CATALOGUE = "catalogue"
CHECKED = 0.2  # the latest share of the events, on which the new model is checked
AT_MOST = 2000  # events that are checked
LIKE, HIDDEN = "1.0", "-inf"  # the weight of an event, as text
WORSE = 2.0  # standard errors by which the new model may not be worse


@dataclass(frozen=True)
class Check:
    """How the old and the new model ranked the items of events that neither has learned from."""

    events: int
    old_hit_rate: float
    new_hit_rate: float
    old_mrr: float
    new_mrr: float


def forgotten_by(store: EventStore, run: Run) -> Forgotten:
    """Selects from ids those of people who were forgotten since the run's last update."""
    markers = store.forgotten(run.dataset.origin.get(LEARNED, {}).get(store.id, 0))
    return lambda ids: store.forgotten_among(ids, markers)


def ever_forgotten_by(store: EventStore) -> Forgotten:
    """The same for people who were ever forgotten and did not come back, since a log may still
    contain them."""
    markers = store.forgotten()
    return lambda ids: [
        id_ for id_ in store.forgotten_among(ids, markers) if not store.has(str(id_))
    ]


def purge(run: Run, store: EventStore, progress: Progress = silent) -> Run:
    """Remove people who asked to be forgotten from the run, and erase what the store still has of
    them."""
    found = forget_people(run, forgotten_by(store, run), progress)
    if found is not run:
        store.rewrite()
    return found


def update_from_events(
    run: Run,
    store: EventStore,
    *,
    epochs: int = EPOCHS,
    learning_rate: float | None = None,
    checked: float = CHECKED,
    candidate: bool = False,
    progress: Progress = silent,
) -> tuple[Run, Growth, Check | None]:
    """A new version of the run that has learned from the events since its last update.

    The latest share `checked` of them is used for checking and not learned: these still count as
    events until the next update. People who asked to be forgotten are removed from the run first,
    even if the rest fails. If the new model is clearly worse, a RunError is raised and the run
    stays as it is. A `candidate` is kept beside the version in use, for an experiment.
    """
    run = purge(run, store, progress)
    with updating(run, candidate=candidate) as path:
        old = ServedModel.of_run(run, "old", store)
        events = store.since(old.trained)
        news = [event for event in events if event.item is not None]
        # In the order of arrival: with a random share, the model would learn from the future.
        learned = news[: len(news) - int(checked * len(news))]
        changed = with_changed_items(run.dataset, store)
        dataset, added = _with_events(changed, learned, old.counts_of)
        last = (
            learned[-1].number if len(learned) < len(news) else events[-1].number if events else 0
        )
        if added.nothing and changed is run.dataset:
            raise DataError(f"{store.name}: has no new events since the run was last updated")
        known = dict(dataset.origin.get(LEARNED, {})) | {store.id: last}
        dataset = replace(dataset, origin=dict(dataset.origin) | {LEARNED: known})
        model = warm_start(
            run,
            dataset,
            epochs=epochs,
            learning_rate=learning_rate,
            progress=progress,
        )
        new = ServedModel(
            Recommender.wrap(model, dataset, run.config), "new", last, weigh=store.weigh
        )
        check = compare(old, new, store, news[len(learned) :][:AT_MOST])
        figures = {} if check is None else asdict(check[0])
        if check is not None and check[1]:
            record_update(store, "refused", **figures)
            raise RunError(
                f"{root_of(run.path)}: the updated model is worse on the latest "
                f"{check[0].events:,} events (MRR {check[0].new_mrr:.4f}, before "
                f"{check[0].old_mrr:.4f}); the run stays as it is"
            )
        stored = store_update(run, path, dataset, model)
        outcome = "candidate" if candidate else "used"
        record_update(store, outcome, version=path.name, **figures)
        return stored, added, None if check is None else check[0]


def with_changed_items(dataset: Dataset, store: EventStore) -> Dataset:
    """The data set with the changes of items since its last update; deleted items stay, marked as
    hidden. The same data set if nothing changed."""
    learned = dict(dataset.origin.get(CATALOGUE, {}))
    changes, last = item_changes(store)
    if not changes or last == learned.get(store.id):
        return dataset
    flag = dataset.catalogue.role("hidden") or "hidden"
    shelved = [
        replace(one, attributes=dict(one.attributes) | {flag: True}) if one.hidden else one
        for one in changes
    ]
    catalogue = dataset.catalogue.with_changes(fitting(dataset.catalogue, shelved))
    return replace(
        dataset,
        split=dataset.split.with_item_ids(catalogue.ids),
        item_names=catalogue.table if catalogue.table.width else None,
        origin=dict(dataset.origin) | {CATALOGUE: learned | {store.id: last}},
    )


def _with_events(
    dataset: Dataset, events: Sequence[Event], counts_of: Callable[[Event], float]
) -> tuple[Dataset, Growth]:
    """The data set with these events: likes, and those that take likes back or hide."""
    train = dataset.split.train
    frame = pl.DataFrame(
        {
            "user": [event.user for event in events],
            "item": [event.item for event in events],
            "time": [event.time for event in events],
            "kind": [str(counts_of(event)) for event in events],
        },
        schema_overrides={"user": pl.String, "item": pl.String, "time": pl.Int64},
    )
    if not len(events):
        return dataset, Growth(0, 0, 0, 0)
    weigh = {text: HIDE if text == HIDDEN else text for text in frame["kind"].unique()}
    if not any(float(text) > 0 for text in weigh):
        weigh[LIKE] = LIKE  # a table of weights needs a like, even if no event was one
    contents = read_more(
        dataset,
        frame,
        every_row_liked=True,
        now=True,
        user="user",
        item="item",
        time="time",
        time_format="microseconds",
        kind="kind",
        weigh=weigh,
    )
    liked = contents.interactions
    if train.weights is None:
        liked = replace(liked, weights=None)
    return enlarge(dataset, liked, contents.unliked, contents.taken, text_ids=True)


def compare(
    old: ServedModel, new: ServedModel, store: EventStore, events: Sequence[Event]
) -> tuple[Check, bool] | None:
    """Both models on events that neither has learned from, and whether the new one is clearly
    worse: by more than two standard errors of the difference in 1 / rank. None if neither can rank
    any of them."""
    ranks = [np.asarray(ranks_before(served, store, events)) for served in (old, new)]
    both = (ranks[0] > 0) & (ranks[1] > 0) if len(events) else np.zeros(0, dtype=bool)
    if not both.any():
        return None
    before, after = (_reciprocal(rank[both]) for rank in ranks)
    gain = after - before
    # A single event has no spread, so it can never refuse a model by itself.
    error = float(gain.std(ddof=1)) / sqrt(len(gain)) if len(gain) > 1 else np.inf
    check = Check(
        events=int(both.sum()),
        old_hit_rate=float((ranks[0][both] <= HIT).mean()),
        new_hit_rate=float((ranks[1][both] <= HIT).mean()),
        old_mrr=float(before.mean()),
        new_mrr=float(after.mean()),
    )
    return check, bool(gain.mean() < -WORSE * error)


def _reciprocal(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return 1 / ranks

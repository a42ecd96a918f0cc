"""Remove people who asked to be forgotten from a run: its data, its weights and every version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ltocf.data.ingest.leaving import forget_users
from ltocf.data.interactions import Id
from ltocf.progress import Progress, silent
from ltocf.runs.run import Run
from ltocf.runs.update import store_update, updating, warm_start
from ltocf.runs.versions import drop_other_versions, root_of

# Which of these ids belong to people who asked to be forgotten.
Forgotten = Callable[[Iterable[Id]], Collection[Id]]


def forget_people(run: Run, forgotten: Forgotten, progress: Progress = silent) -> Run:
    """The run without those people, as its only version; the same run if it has none of them.

    Nothing new is learned: the vectors of other users stay as they were, and a closed form is
    solved again on the remaining pairs. There is no rollback, since earlier versions contain them.
    """
    known: list[Id] = run.dataset.split.train.user_ids.ids.to_list()
    rest = run.dataset.rest
    gone = forgotten([*known, *(rest["user"].unique().to_list() if rest is not None else ())])
    root = root_of(run.path)
    if not gone:
        return run
    with updating(run) as path:
        left, kept = forget_users(run.dataset, gone)
        # No epochs: forgetting must neither wait for a training nor depend on its result.
        model = warm_start(run, left, epochs=0, kept_users=kept, progress=progress)
        found = store_update(run, path, left, model)
    drop_other_versions(root)
    return found

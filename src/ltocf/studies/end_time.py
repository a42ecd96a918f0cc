"""Figure 9: how long K the embeddings evolve."""

from __future__ import annotations

from ltocf.studies.outcomes import Found
from ltocf.studies.plan import Plan, Setting
from ltocf.studies.report import Page
from ltocf.studies.study import Study
from ltocf.studies.sweeps import present_sweep, swept

VALUES = (1, 2, 3, 4, 5, 6)


def settings(plan: Plan) -> list[Setting]:
    return swept(plan, "K", VALUES, lambda value: [f"end_time={value}.0"])


def present(found: Found, page: Page) -> None:
    present_sweep(found, page, "K", VALUES)


STUDY = Study(
    name="K",
    paper="Figure 9",
    shows="end times K = 1 to 6, fixed against learned times",
    settings=settings,
    present=present,
)

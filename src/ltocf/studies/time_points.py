"""Figure 8: how many times T to read the ODE at."""

from __future__ import annotations

from ltocf.studies.outcomes import Found
from ltocf.studies.plan import Plan, Setting
from ltocf.studies.report import Page
from ltocf.studies.study import Study
from ltocf.studies.sweeps import present_sweep, swept

VALUES = (1, 2, 3, 4)


def settings(plan: Plan) -> list[Setting]:
    return swept(plan, "T", VALUES, lambda value: [f"time_points={value}"])


def present(found: Found, page: Page) -> None:
    present_sweep(found, page, "T", VALUES)


STUDY = Study(
    name="T",
    paper="Figure 8",
    shows="T = 1 to 4 time points, fixed against learned times",
    settings=settings,
    present=present,
)

"""ltocf reproduce"""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table, say
from ltocf.progress import show_progress


class BudgetName(StrEnum):
    quick = "quick"
    full = "full"


def reproduce(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]... [KEY=VALUE]...",
            help="Studies by name, or 'all'; settings such as epochs=4 apply to every training. "
            "Without a study, the studies are listed with the time that each takes.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(help="One of gowalla, yelp2018, amazon-book, town or a data set's directory."),
    ] = "town",
    budget: Annotated[
        BudgetName | None,
        typer.Option(
            help="How much time to spend: quick shows in minutes that every study runs; full gives "
            "meaningful figures. Default: quick on the town, full elsewhere.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds for every setting. Default: as each study needs.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where report and pictures go. Default: runs/paper-DATA.",
        ),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Then print the tables of these studies as LaTeX.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat the LT-OCF paper's studies: train, draw and report. Run it again to continue."""
    from ltocf.studies.estimates import duration
    from ltocf.studies.report import TABLES
    from ltocf.studies.reproduce import chosen, listing, plan_for
    from ltocf.studies.reproduce import reproduce as run

    names = [word for word in arguments or [] if "=" not in word]
    overrides = [word for word in arguments or [] if "=" in word]
    studies = chosen(names)
    plan = plan_for(data, budget.value if budget else None, seeds, overrides)
    if not studies:
        listed = listing(plan)
        if as_json:
            print_json([asdict(study) for study in listed])
            return
        rows = [[s.name, s.paper, s.shows, str(s.trainings), duration(s.seconds)] for s in listed]
        title = f"studies on {plan.dataset.name}, {plan.budget} budget, on two cores"
        print_table(title, ["study", "in the paper", "shows", "trainings", "about"], rows)
        print("Trainings that studies share are done once. Start with: ltocf reproduce all")
        return
    output = output or Path("runs") / f"paper-{plan.dataset.name}"
    try:
        with show_progress() as progress:
            report = run(studies, plan, output, progress)
    except KeyboardInterrupt:
        say("\nstopped; finished trainings are kept. Run the same command to continue.")
        raise typer.Exit(130) from None
    tables = [output / study.name / TABLES for study in studies]
    if as_json:
        also = {"latex": [str(path) for path in tables]} if latex else {}
        print_json({"report": str(report), "studies": [study.name for study in studies]} | also)
    elif latex:
        print("\n".join(path.read_text(encoding="utf-8") for path in tables))
    else:
        print(f"report in {report}")

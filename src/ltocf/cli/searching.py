"""How a search looks in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ltocf.cli.options import deployed_path
from ltocf.cli.output import print_json, print_table, say
from ltocf.cli.refit import deployed_line, fit_to_everything
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.config import RunConfig
    from ltocf.search.process.supervisor import SearchReport


def search(
    settings: RunConfig | None,
    output: Path,
    began: float,
    seconds: float | None,
    order: str | None,
    overwrite: bool,
    deploy: bool,
    as_json: bool,
) -> None:
    """Search until `seconds` after `began`, show progress, and print the result. Without settings,
    continue the search at `output`."""
    from ltocf.deadlines import spoken, usual_seconds
    from ltocf.search.process.job import Job, pairs_in
    from ltocf.search.process.supervisor import supervise

    resume, opening = settings is None, list[str]()
    if seconds is None:
        seconds = usual_seconds(pairs_in(settings.dataset if settings else output))
        opening.append(f"searching for {spoken(seconds)}; --budget TIME searches for longer")
    job = Job(
        str(output),
        began,
        seconds,
        {} if settings is None else settings.model_dump(exclude_none=True),
        order,
        overwrite,
        resume,
    )

    # The opening line waits for the first result, so that an early error is all that is printed.
    def tell(line: str) -> None:
        say("\n".join([*opening, line]))
        opening.clear()

    with show_progress() as progress:
        report = supervise(job, progress, tell)
    deployed = None
    if deploy and report.ended != "stopped":
        from ltocf.runs.run import Run

        where = deployed_path(output)
        deployed = fit_to_everything(Run.open(output), where, overwrite=overwrite)
    if as_json:
        also = {} if deployed is None else {"deployed": str(deployed_path(output))}
        print_json({"run": str(output)} | report.as_json() | also)
    else:
        _print_report(report, output, resume)
        if deployed is not None:
            print(deployed_line(deployed))
    if report.ended == "stopped":
        raise typer.Exit(130)


def _print_report(report: SearchReport, output: Path, resume: bool) -> None:
    from ltocf.search.process.supervisor import metric_line

    if report.tried:
        print_table("what was tried, on validation", *report.table())
    if not report.saved and report.version is None:
        if resume:
            say(f"stopped before anything better was saved; {output} is as it was")
        else:
            say("stopped before anything was saved; start again with the same command")
        return
    print(f"chosen: {report.chosen}")
    if report.saved and report.saved[-1]["provisional"]:
        print("no time was left to train it on all pairs: this is what validation judged")
    if report.metrics:
        some = f" of {report.sampled_users:,} users (of all: ltocf evaluate {output})"
        print(f"test  {metric_line(report.metrics)}{some if report.sampled_users else ''}")
    elif report.ended == "done":
        print(f"not tested: no test pairs, or no time left (ltocf evaluate {output})")
    print(f"saved in {output} (version {report.version}); more: ltocf train --resume -o {output}")

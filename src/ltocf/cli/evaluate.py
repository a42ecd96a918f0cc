"""ltocf evaluate"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import RunPath
from ltocf.cli.output import Json, print_json, print_table
from ltocf.progress import show_progress

NOTHING_TO_TEST = "no test pairs: there is nothing to test"


def evaluate(
    run: RunPath,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="The length of the lists; repeat for more. Default: 10 20 50."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test a run on the pairs that were held out: every unseen item is a candidate."""
    from ltocf.runs.pipeline import TEST_KS, test
    from ltocf.runs.run import load_run

    opened, model = load_run(run)
    ks = sorted(set(k or TEST_KS))
    with show_progress() as progress:
        metrics = test(opened, model, ks, progress)
    if as_json:
        print_json(metrics)
        return
    if not metrics:
        print(NOTHING_TO_TEST)
        return
    names = list(dict.fromkeys(name.partition("@")[0] for name in metrics))
    rows = [[str(cut), *(f"{metrics[f'{name}@{cut}']:.4f}" for name in names)] for cut in ks]
    print_table(f"test metrics of {run}", ["k", *names], rows)

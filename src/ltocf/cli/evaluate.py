"""ltocf evaluate"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.options import RunPath
from ltocf.cli.output import Json, print_json, print_table, show_progress


def evaluate(
    run: RunPath,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="List length; may be given more than once. Default: 10 20 50."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test metrics of a run: every unseen item is a candidate."""
    from ltocf.ranking.top_k import check_k
    from ltocf.runs.pipeline import TEST_KS, test
    from ltocf.runs.run import Run

    opened = Run.open(run)
    ks = sorted(set(k or TEST_KS))
    if k:
        check_k(ks[0], opened.dataset.split.train.n_items)
        check_k(ks[-1], opened.dataset.split.train.n_items)
    with show_progress() as progress:
        metrics = test(opened, opened.load(), ks, progress)
    if as_json:
        print_json(metrics)
        return
    names = list(dict.fromkeys(name.partition("@")[0] for name in metrics))
    rows = [[str(cut), *(f"{metrics[f'{name}@{cut}']:.4f}" for name in names)] for cut in ks]
    print_table(f"test metrics of {run}", ["k", *names], rows)

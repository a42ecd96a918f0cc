"""ltocf evaluate"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ltocf.cli.options import RunPath
from ltocf.cli.output import Json, print_beyond, print_json, print_table
from ltocf.cli.rule_options import AlikeBy
from ltocf.errors import ConfigError
from ltocf.progress import show_progress

if TYPE_CHECKING:
    from ltocf.models.base import Model
    from ltocf.runs.run import Run

ACCURACY = ("recall", "ndcg", "precision", "hit", "map", "mrr")
NOTHING_TO_TEST = "no test pairs: there is nothing to test"


def evaluate(
    run: RunPath,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", help="The length of the lists; repeat for more. Default: 10 20 50."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Cross-validate: train and test on this many cuts of all pairs."),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="time|random", help="With --folds: how the pairs are cut.")
    ] = "time",
    diversity: Annotated[
        bool,
        typer.Option(
            "--diversity",
            help="Show how much NDCG each level of diversity costs, on validation pairs.",
        ),
    ] = False,
    alike_by: AlikeBy = "attributes",
    as_json: Json = False,
) -> None:
    """Test a run on the pairs that were held out: every unseen item is a candidate."""
    if diversity and folds is not None:
        raise ConfigError("give either --folds or --diversity, not both")

    from ltocf.runs.pipeline import test
    from ltocf.runs.run import load_run
    from ltocf.training.protocol import list_lengths

    opened, model = load_run(run)
    if folds is not None:
        _evaluate_folds(opened, sorted(set(k or [20])), folds, by, as_json)
        return
    if diversity:
        _price_diversity(opened, model, max(k or [20]), alike_by, as_json)
        return
    ks = sorted(set(k or list_lengths(opened.dataset.split)))
    with show_progress() as progress:
        metrics = test(opened, model, ks, progress)
    if as_json:
        print_json(metrics)
        return
    if not metrics:
        print(NOTHING_TO_TEST)
        return
    rows = [[str(cut), *(f"{metrics[f'{name}@{cut}']:.4f}" for name in ACCURACY)] for cut in ks]
    print_table(f"test metrics of {run}", ["k", *ACCURACY], rows)
    others = {
        name: value for name, value in metrics.items() if name.partition("@")[0] not in ACCURACY
    }
    print_beyond("\nbeyond accuracy", [str(run)], [others])


def _evaluate_folds(run: Run, ks: list[int], folds: int, by: str, as_json: bool) -> None:
    import numpy as np

    from ltocf.runs.folds import evaluate_folds

    with show_progress() as progress:
        found = evaluate_folds(run.dataset, run.config, folds, by, ks, progress)
    names = list(found[0])
    table = np.array([[metrics[name] for name in names] for metrics in found])
    mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1)
    if as_json:
        print_json({"folds": found, "mean": dict(zip(names, mean.tolist(), strict=True))})
        return
    rows = [
        [name, *(f"{value:.4f}" for value in table[:, n]), f"{mean[n]:.4f}", f"{spread[n]:.4f}"]
        for n, name in enumerate(names)
    ]
    columns = ["metric", *(f"fold {n + 1}" for n in range(folds)), "mean", "deviation"]
    print_table(f"{folds} folds by {by}", columns, rows)


def _price_diversity(run: Run, model: Model, k: int, by: str, as_json: bool) -> None:
    from dataclasses import asdict

    from ltocf.recommend.diversity_price import diversity_prices

    with show_progress() as progress:
        found = diversity_prices(run.dataset, run.config, model, k, by=by, progress=progress)
    if as_json:
        print_json([asdict(row) for row in found])
        return
    first = found[0]
    rows = [
        [
            f"{row.diversity:g}",
            f"{row.ndcg:.4f}",
            f"{row.ndcg / first.ndcg - 1:+.1%}" if first.ndcg else "",
            f"{row.intra_list:.4f}",
            f"{row.intra_list - first.intra_list:+.4f}",
        ]
        for row in found
    ]
    columns = ["--diversity", f"NDCG@{k}", "price", "intra-list diversity", "gain"]
    print_table("on validation pairs", columns, rows)

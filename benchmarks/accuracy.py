"""Train LT-OCF and its variants, several seeds each, and write the table with curves.

    python -m benchmarks.accuracy --runs runs --report docs/results/accuracy.md --json

The settings and the number of epochs in a config were chosen on validation (docs/
experiments-log.md). A run trains on all of train and is tested after every few epochs, for the
curve: the last epoch's figure is the honest one; the best epoch's, chosen by the test set itself,
is what much of the literature reports. Finished runs are kept and an interrupted one is
continued; `--table-only` trains nothing.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.baselines import parse_arguments, train
from benchmarks.measure import machine, recall_and_ndcg
from ltocf.ranking.metrics import Metrics
from ltocf.runs.run import Run
from ltocf.runs.settings import read_config
from ltocf.storage.files import replacing

CURVE = ("protocol=best-test-epoch", "evaluate_every=5", "patience=1000")


@dataclass(frozen=True)
class Entry:
    """A row of the table: a config with some settings changed, and the seeds it is trained with."""

    name: str
    config: str
    changes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    published: str = ""

    def runs(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for seed in self.seeds:
            yield f"{self.name}-{seed}", (*self.changes, *CURVE, f"seed={seed}")


ENTRIES = (
    Entry("gowalla-ltocf", "gowalla-ltocf", seeds=(0, 1, 2), published="0.1875 / 0.1574"),
    Entry(
        "gowalla-ltocf-fixed-times",
        "gowalla-ltocf",
        ("learn_times=false",),
        (0, 1, 2),
        "0.1859 / 0.1558",
    ),
    Entry("gowalla-ltocf-recency", "gowalla-ltocf-recency", seeds=(0, 1, 2)),
    Entry("gowalla-lightgcn-recency", "gowalla-lightgcn", ("recency=1.2",)),
    Entry(
        "gowalla-ltocf-one-uniform-negative", "gowalla-ltocf", ("negatives=1", "sampling=uniform")
    ),
    Entry("yelp2018-ltocf", "yelp2018-ltocf", published="0.0671 / 0.0549"),
    Entry("yelp2018-ltocf-recency", "yelp2018-ltocf-recency"),
)


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    run: str
    epochs: int
    seconds: float
    last: Metrics
    best: Metrics
    best_epoch: int
    times: list[float]


def outcome(run: Run) -> Outcome:
    history = run.history()
    tested = [record for record in history if record.metrics]
    best = max(tested, key=lambda record: record.metrics["recall@20"])
    seconds = sum(record.seconds for record in history)
    return Outcome(
        run.path.name,
        len(history),
        seconds,
        recall_and_ndcg(tested[-1].metrics),
        recall_and_ndcg(best.metrics),
        best.epoch,
        history[-1].times,
    )


def spread(values: list[float]) -> str:
    """The mean, and with several seeds their standard deviation."""
    mean = statistics.fmean(values)
    return f"{mean:.4f}" + (f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else "")


def table(finished: dict[Entry, list[Outcome]]) -> list[str]:
    lines = [
        "| run | seeds | epochs | seconds | Recall@20 | NDCG@20 | best test epoch | published |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for entry, found in finished.items():
        recall, ndcg = (
            spread([one.last[metric] for one in found]) for metric in ("recall@20", "ndcg@20")
        )
        best = " / ".join(
            f"{statistics.fmean(one.best[metric] for one in found):.4f}"
            for metric in ("recall@20", "ndcg@20")
        )
        seconds = statistics.fmean(one.seconds for one in found)
        cells = (
            f"[{entry.name}]({entry.name}.png)",
            str(len(found)),
            str(found[0].epochs),
            f"{seconds:.0f}",
            recall,
            ndcg,
            best,
            entry.published,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def write_report(
    finished: dict[Entry, list[Outcome]], runs: Path, report: Path, histories: Path
) -> None:
    """The table with the curves of each row's first run beside it, and its history apart."""
    histories.mkdir(parents=True, exist_ok=True)
    for entry, found in finished.items():
        first = runs / found[0].run
        shutil.copyfile(first / "curves.png", report.parent / f"{entry.name}.png")
        shutil.copyfile(first / "history.jsonl", histories / f"{entry.name}.jsonl")
    head = [
        "# Accuracy",
        "",
        "All-ranking Recall@20 and NDCG@20 on test after the last epoch, with the settings and the",
        "number of epochs of `configs/`, which were chosen on validation; mean and standard",
        "deviation over seeds. *Best test epoch* is the best epoch as the test set itself would",
        "choose it, which is often published. Seconds are those of the whole run, tests included.",
        "Links show the curves of the first seed.",
        "",
        f"Written by `python -m benchmarks.accuracy` on {datetime.now(UTC):%Y-%m-%d}; "
        f"machine: {machine()}, no GPU, shared with other work.",
        "",
    ]
    with replacing(report) as temporary:
        temporary.write_text("\n".join([*head, *table(finished)]) + "\n", encoding="utf-8")


def main() -> None:
    arguments = parse_arguments(__doc__)
    finished: dict[Entry, list[Outcome]] = {}
    for entry in ENTRIES:
        for name, changes in entry.runs():
            path = arguments.runs / name
            if not arguments.table_only and arguments.only in name:
                train(path, read_config(arguments.configs / f"{entry.config}.toml", changes))
            if (path / "metrics.json").exists():
                finished.setdefault(entry, []).append(outcome(Run.open(path)))
    if arguments.report:
        write_report(finished, arguments.runs, arguments.report, Path("research/histories"))
    if arguments.json:
        rows = {entry.name: [asdict(one) for one in found] for entry, found in finished.items()}
        print(json.dumps({"benchmark": "accuracy", "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()

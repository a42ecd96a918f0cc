"""Train the configs of the paper's baselines one after another, and write their table.

python -m benchmarks.baselines --runs runs --report docs/results/baselines.md --json

Finished runs are kept and an interrupted one is continued, so it may be stopped at any time; a
table is written of what has finished. `--table-only` trains nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import machine
from ltocf.config import RunConfig
from ltocf.runs.pipeline import start_run, train_run
from ltocf.runs.run import Run
from ltocf.runs.settings import read_config
from ltocf.storage.files import replacing
from ltocf.studies.claims import table as paper

# The paper's rows but its own. MF comes first: others start from its vectors.
PUBLISHED = {
    dataset: {model: row for model, row in paper.PUBLISHED[dataset].items() if model != "ltocf"}
    for dataset in ("gowalla", "yelp2018")
}


@dataclass(frozen=True)
class Row:
    """A finished run beside what was published of its model."""

    run: str
    epochs: int
    seconds: float
    recall: float
    ndcg: float
    published_recall: float
    published_ndcg: float


def main() -> None:
    arguments = parse_arguments(__doc__)
    wanted = [name for name in config_names() if arguments.only in name]
    if not arguments.table_only:
        for name in wanted:
            config = config_of(name, arguments.configs, arguments.runs)
            train(arguments.runs / name, config)
    rows = list(finished_rows(arguments.runs))
    if arguments.report:
        with replacing(arguments.report) as temporary:
            temporary.write_text(table(rows), encoding="utf-8")
    if arguments.json:
        ratio = min((row.recall / row.published_recall for row in rows), default=None)
        report = {"benchmark": "baselines", "machine": machine(), "ratio": ratio}
        print(json.dumps(report | {"rows": [asdict(row) for row in rows]}))


def config_names() -> list[str]:
    return [f"{dataset}-{model}" for dataset, rows in PUBLISHED.items() for model in rows]


def config_of(name: str, configs: Path, runs: Path) -> RunConfig:
    """The config of this name; a run it starts from is looked for beside its own."""
    config = read_config(configs / f"{name}.toml")
    if config.start_from is not None:
        config = config.model_copy(update={"start_from": str(runs / Path(config.start_from).name)})
    return config


def train(path: Path, config: RunConfig) -> None:
    """Begin the run of a config, continue it, or leave it if it has finished. A run of other
    settings is refused: its figures would stand in the row of a config that did not give them."""
    run = Run.open(path) if (path / "config.toml").exists() else start_run(config, path)
    if run.config.model_copy(update={"versions": {}}) != config:
        raise SystemExit(f"{path}: was trained with other settings; remove it to train again")
    if not run.finished:
        print(f"{path.name} ...", flush=True)
        train_run(run)


def finished_rows(runs: Path) -> Iterator[Row]:
    for name in config_names():
        dataset, _, model = name.partition("-")
        if not (runs / name / "metrics.json").exists():
            continue
        run = Run.open(runs / name)
        metrics, history = run.metrics(), run.history()
        seconds = sum(record.seconds for record in history)
        yield Row(
            name,
            len(history),
            round(seconds),
            metrics["recall@20"],
            metrics["ndcg@20"],
            *PUBLISHED[dataset][model],
        )


def table(rows: list[Row]) -> str:
    lines = [
        "# The paper's baselines, trained here",
        "",
        "Each row is a file of `src/ltocf/configs/`, trained on all of train with the settings",
        "and the number of epochs given there, and tested after the last epoch.",
        "`research/baselines-log.md` says how they were chosen, and which rows were tested more",
        "than once. *Published* are the figures of the LT-OCF paper, as it prints them (CMN's",
        "0.0475 on Yelp2018 is 0.0457 in the paper that it was copied from). Seconds are those",
        "of training.",
        "",
        f"Written by `python -m benchmarks.baselines` on {datetime.now(UTC):%Y-%m-%d}; "
        f"machine: {machine()}, no GPU, shared with other work.",
        "",
        "| run | epochs | seconds | Recall@20 | NDCG@20 | published |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        published = f"{row.published_recall:.4f} / {row.published_ndcg:.4f}"
        numbers = f"{row.epochs} | {row.seconds:.0f} | {row.recall:.4f} | {row.ndcg:.4f}"
        lines.append(f"| {row.run} | {numbers} | {published} |")
    return "\n".join(lines) + "\n"


def parse_arguments(doc: str) -> argparse.Namespace:
    """What a benchmark takes that trains configs and writes their table."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--configs", type=Path, default=Path("src/ltocf/configs"))
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept")
    parser.add_argument("--only", default="", help="part of a run's name, such as gowalla-mf")
    parser.add_argument("--table-only", action="store_true", help="train nothing")
    parser.add_argument("--report", type=Path, help="the Markdown file to write")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""A study's page of the report: sentences, tables and figures as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ltocf.config import to_toml
from ltocf.files import replacing
from ltocf.studies.figures import Chart, draw
from ltocf.studies.outcomes import METRICS, Found, Outcome, mean_spread

PAGE = "page.txt"  # Markdown, but no page of its own in a site


class Page:
    """What a study has to say, in order; `write` puts it into its folder with its figures."""

    def __init__(self, folder: Path, title: str, paper: str) -> None:
        self.folder = folder
        self.lines = [f"## {folder.name}: {title}", "", f"In the paper: {paper}.", ""]
        self.charts: list[Chart] = []

    def say(self, text: str) -> None:
        self.lines += [text, ""]

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.lines.append(_row(columns))
        self.lines.append(_row(["---"] * len(columns)))
        self.lines += [_row(row) for row in rows]
        self.lines.append("")

    def figures(self, *charts: Chart) -> None:
        """Side by side."""
        self.charts += charts
        links = [f"![{c.title}]({self.folder.name}/{c.name}.svg)" for c in charts]
        self.say(" ".join(links))

    def trainings(self, found: Found, outcomes: Sequence[Outcome] | None = None) -> None:
        """The table that most studies have: a row a label, validation and test, mean and spread."""
        chosen = found.outcomes if outcomes is None else outcomes
        labels = dict.fromkeys(outcome.setting.label for outcome in chosen)
        heads = [f"{where} {name}" for where in ("valid", "test") for name in METRICS.values()]
        rows = []
        for label in labels:
            cells = [_cell(found.valid(label, metric)) for metric in METRICS]
            cells += [_cell(found.test(label, metric)) for metric in METRICS]
            best = [outcome.best for outcome in found.of(label)]
            epochs = "/".join(str(record.epoch) for record in best if record is not None)
            seconds = mean_spread([outcome.seconds for outcome in found.of(label)])[0]
            config = found.of(label)[0].name
            link = f"[{label}](configs/{config}.toml)"
            rows.append([link, str(len(best)), epochs, *cells, f"{seconds:.1f}"])
        self.table(["setting", "seeds", "best epoch", *heads, "seconds"], rows)

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for chart in self.charts:
            draw(chart, self.folder)
        with replacing(self.folder / PAGE) as temporary:
            temporary.write_text("\n".join(self.lines), encoding="utf-8")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean, spread = mean_spread(values)
    return f"{mean:.4f} ± {spread:.4f}" if len(values) > 1 else f"{mean:.4f}"


def compare(name: str, ours: Sequence[float], other: str, theirs: Sequence[float]) -> str:
    """A sentence: the difference of two means, and whether it exceeds the seeds' spread."""
    (a, spread_a), (b, spread_b) = mean_spread(ours), mean_spread(theirs)
    difference, spread = a - b, max(spread_a, spread_b)
    said = f"{name} against {other}: {a:.4f} against {b:.4f}, a difference of {difference:+.4f}"
    if min(len(ours), len(theirs)) < 2:
        return f"{said} (one seed, so its spread is not known)."
    verdict = "more" if abs(difference) > 2 * spread else "not more"
    return f"{said}, which is {verdict} than twice the seeds' spread ({spread:.4f})."


def write_config(outcome: Outcome, folder: Path, first: str | None) -> None:
    """The training's config among the report's files; `first` is where its vectors come from."""
    folder.mkdir(parents=True, exist_ok=True)
    config = outcome.setting.config.model_copy(update={"start_from": first})
    with replacing(folder / f"{outcome.name}.toml") as temporary:
        temporary.write_text(to_toml(config), encoding="utf-8")


def assemble(output: Path, title: str, about: str, studies: Sequence[str]) -> Path:
    """OUTPUT/report.md, from the pages of the studies that have one."""
    pages = [output / name / PAGE for name in studies]
    texts = [page.read_text(encoding="utf-8") for page in pages if page.is_file()]
    path = output / "report.md"
    with replacing(path) as temporary:
        temporary.write_text("\n".join([f"# {title}", "", about, "", *texts]), encoding="utf-8")
    return path

"""A study's page of the report: sentences, tables and figures as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ltocf.config import to_toml
from ltocf.data.sources.published import Portion
from ltocf.pictures.charts import Chart, draw, draw_panels
from ltocf.runs.comparison import Difference, bootstrap
from ltocf.storage.files import replacing
from ltocf.studies.outcomes import METRICS, Outcome, StudyResult, mean_spread

PAGE = "page.txt"  # Markdown, but no page of its own in a site
TABLES = "tables.tex"
RESAMPLES = 1000
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


class Page:
    """What a study has to say, in order; `write` puts it into its folder with its figures."""

    def __init__(
        self, folder: Path, title: str, paper: str, data: str, portion: Portion | None = None
    ) -> None:
        self.folder, self.data, self.portion = folder, data, portion
        self.lines = [f"## {folder.name}: {title}", "", f"In the paper: {paper}.", ""]
        self.rows: list[list[Chart]] = []  # of figures
        self.tables: list[Table] = []

    def say(self, text: str) -> None:
        self.lines += [text, ""]

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.tables.append((columns, rows))
        if self.portion:
            self.say(f"*On {self.portion} of {self.portion.of}.*")
        self.lines.append(_row(columns))
        self.lines.append(_row(["---"] * len(columns)))
        self.lines += [_row(row) for row in rows]
        self.lines.append("")

    def figures(self, *charts: Chart) -> None:
        """Side by side."""
        data = f"{self.data},\n{self.portion}" if self.portion else self.data
        named = [replace(chart, title=f"{chart.title}, {data}") for chart in charts]
        self.rows.append(named)
        links = [f"![{c.title}]({self.folder.name}/{c.name}.svg)" for c in charts]
        self.say(" ".join(links))

    def trainings(self, found: StudyResult, outcomes: Sequence[Outcome] | None = None) -> None:
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
            rate = found.of(label)[0].setting.config.train.learning_rate
            shown = "" if rate is None else f"{rate:g}"
            rows.append([link, shown, str(len(best)), epochs, *cells, f"{seconds:.1f}"])
        self.table(["setting", "rate", "seeds", "best epoch", *heads, "seconds"], rows)

    def sweeps(self, found: StudyResult) -> None:
        """How each arm's learning rate was chosen: the best validation Recall@20 of each."""
        swept = {label: dict(trials) for label, trials in found.sweeps.items()}
        rates = sorted({rate for recalls in swept.values() for rate in recalls})
        rows = [
            [label, *(_marked(recalls.get(rate), max(recalls.values())) for rate in rates)]
            for label, recalls in swept.items()
        ]
        self.say(
            "Best validation Recall@20 by learning rate, first seed; a sweep goes on, by factors "
            "of two, until it falls, and the best one is taken."
        )
        self.table(["arm", *(f"{rate:g}" for rate in rates)], rows)

    def compare(self, found: StudyResult, label: str, base: str) -> None:
        """A row of differences from `base` for each metric, with their interval over users."""
        differences = bootstrap(
            found.per_user(base), found.per_user(label), resamples=RESAMPLES, seed=0
        )
        for difference in differences:
            ours, theirs = (found.test(name, difference.metric) for name in (label, base))
            self.say(
                f"{METRICS[difference.metric]}, {verdict(label, ours, base, theirs, difference)}"
            )

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for place, charts in enumerate(self.rows):
            for chart in charts:
                draw(chart, self.folder)
            if len(charts) > 1:
                draw_panels(charts, self.folder, f"panels-{place + 1}")
        note = f"on {self.portion} of {self.portion.of}" if self.portion else ""
        latex = "\n".join(latex_table(columns, rows, note) for columns, rows in self.tables)
        with replacing(self.folder / TABLES) as temporary:
            temporary.write_text(latex, encoding="utf-8")
        with replacing(self.folder / PAGE) as temporary:
            temporary.write_text("\n".join(self.lines), encoding="utf-8")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean, spread = mean_spread(values)
    return f"{mean:.4f} ± {spread:.4f}" if len(values) > 1 else f"{mean:.4f}"


def _marked(value: float | None, best: float) -> str:
    if value is None:
        return ""
    return f"**{value:.4f}**" if value == best else f"{value:.4f}"


def verdict(
    name: str,
    ours: Sequence[float],
    other: str,
    theirs: Sequence[float],
    difference: Difference,
) -> str:
    """A sentence: the difference of two means, its interval over users and the spread of seeds.

    One is above the other only if the interval leaves out zero and the difference exceeds what
    seeds make of it; one seed alone tells nothing of that."""
    (a, spread_a), (b, spread_b) = mean_spread(ours), mean_spread(theirs)
    spread = float(np.hypot(spread_a / len(ours) ** 0.5, spread_b / len(theirs) ** 0.5))
    sure = difference.low > 0 or difference.high < 0
    told = sure and min(len(ours), len(theirs)) > 1 and abs(a - b) > 2 * spread
    word = ("above" if a > b else "below") if told else "not told apart from"
    return (
        f"**{name}** is **{word}** {other}: {a:.4f} and {b:.4f}, {a - b:+.4f} "
        f"(95 % of resampled users {difference.low:+.4f} to {difference.high:+.4f}, "
        f"standard error over seeds {spread:.4f})."
    )


def latex_table(columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A booktabs table, with a note beneath; links and bold as LaTeX has them."""
    across = rf"\multicolumn{{{len(columns)}}}{{l}}{{\footnotesize {_latex(note)}}} \\"
    beneath = [across] if note else []
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (columns, *rows)]
    head = [
        r"\begin{tabular}{l" + "r" * (len(columns) - 1) + "}",
        r"\toprule",
        body[0],
        r"\midrule",
    ]
    return "\n".join([*head, *body[1:], r"\bottomrule", *beneath, r"\end{tabular}", ""])


def _latex(cell: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    for character in "%&_#":
        text = text.replace(character, "\\" + character)
    text = re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text)
    return text.replace("±", r"$\pm$")


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

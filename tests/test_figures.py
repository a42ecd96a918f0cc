"""A figure that README and pages share is the same everywhere, with the same command."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAIR = re.compile(r"0\.\d{4} / 0\.\d{4}")
COMMAND = re.compile(r"`(ltocf train [^`]*)`")
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "results").glob("*.md")
}


def measured(text: str) -> dict[str, str]:
    """The first figure of each line that names a command, by command."""
    found = {}
    for line in text.splitlines():
        command, pair = COMMAND.search(line), PAIR.search(line)
        if command and pair:
            found[command[1]] = pair[0]
    return found


ROWS = measured(README)
ACCURACY = re.compile(r"(?<![\d.])0\.\d{4}(?!\d)")
# What the paper prints for solvers and for K, which no table of ours repeats.
PRINTED = {"0.1834", "0.1823", "0.1833"}


def test_the_readme_has_figures_with_commands():
    assert 3 <= len(ROWS) <= 8


@pytest.mark.parametrize("command", ROWS)
def test_a_figure_of_the_readme_is_that_of_the_results(command):
    pages = [found for text in RESULTS.values() if command in (found := measured(text))]
    assert pages, f"no page of docs/results has {command!r}"
    assert {page[command] for page in pages} == {ROWS[command]}


def test_every_accuracy_of_a_page_is_in_a_report_or_a_log():
    """Study a data set again, and this names what a page still says of the study before it."""
    from ltocf.studies.claims.table import PUBLISHED

    sources = [*(ROOT / "docs" / "results").rglob("*.md"), *(ROOT / "research").rglob("*.md")]
    known = {
        f"{value:.4f}" for rows in PUBLISHED.values() for row in rows.values() for value in row
    }
    for path in sources:
        known |= set(ACCURACY.findall(path.read_text(encoding="utf-8")))
    for name in ("README.md", "CHANGELOG.md", "docs/paper.md"):
        said = set(ACCURACY.findall((ROOT / name).read_text(encoding="utf-8")))
        assert not said - known - PRINTED, name


PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
REPORTS = {
    path.parent.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "results" / "paper").glob("*/report.md")
}
# The studies that each claim's section quotes.
STUDIED = {
    3: ["times"], 4: ["solvers"], 5: ["connections"], 6: ["T"], 7: ["K"], 8: ["curves"],
    9: ["times"], 10: ["T", "K"], 12: ["recipes"],
}  # fmt: skip


def section(claim: int) -> str:
    """What the page says of a claim; 9 to 11 share a section."""
    name = r"9 to 11\." if claim in (9, 10, 11) else rf"{claim}\."
    found = re.search(rf"^## {name} .*?(?=^## )", PAPER, re.M | re.S)
    assert found, claim
    return found[0]


def studied(claim: int) -> str:
    """What the reports say in the studies of a claim."""
    parts = [
        part
        for report in REPORTS.values()
        for study in STUDIED[claim]
        for part in re.findall(rf"^## {study}: .*?(?=^## |\Z)", report, re.M | re.S)
    ]
    assert parts, claim
    return "\n".join(parts)


@pytest.mark.parametrize("claim", [3, 4, 5, 6, 7, 8])
def test_the_figures_of_a_claim_are_those_of_its_study(claim):
    """Every accuracy and every end of an interval; what a section quotes of the paper, of another
    claim or of another page is named there."""
    from ltocf.studies.claims.table import PUBLISHED

    said = section(claim)
    elsewhere = PRINTED | {f"{value:.4f}" for value in PUBLISHED["gowalla"]["ltocf"]}
    for other in map(int, re.findall(r"claim (\d)", said)):
        elsewhere |= set(ACCURACY.findall(section(other)))
    for page in re.findall(r"\(results/([a-z-]+\.md)\)", said):
        elsewhere |= set(ACCURACY.findall(RESULTS[page]))
    found = set(ACCURACY.findall(said)) - elsewhere
    assert len(found) > 3
    assert not found - set(ACCURACY.findall(studied(claim)))


@pytest.mark.parametrize("claim", range(1, 13))
def test_a_verdict_in_the_table_of_claims_is_that_of_its_section(claim):
    """Each row has its figures from its section, and names the command they come from."""
    row = next(line for line in PAPER.splitlines() if line.startswith(f"| {claim}. "))
    *_, verdict, command = row.strip("| ").split(" | ")
    assert not set(ACCURACY.findall(verdict)) - set(ACCURACY.findall(section(claim)))
    assert re.fullmatch(r"(`ltocf [^`]+`(, )?)+", command), command


def test_a_row_of_the_search_names_the_commit_it_was_measured_at():
    rows = [line for line in RESULTS["search.md"].splitlines() if COMMAND.search(line)]
    tables = [row for row in rows if row.startswith("|")]
    assert tables and all(re.search(r"\| [0-9a-f]{7}, \d{4}-\d\d-\d\d \|$", row) for row in tables)


def test_a_row_of_the_readme_has_commit_and_recipe_of_the_results():
    measured_at = {}
    for line in RESULTS["search.md"].splitlines():
        if line.startswith("|") and (command := COMMAND.search(line)):
            *_, recipe, commit = line.strip("| ").split(" | ")
            measured_at[command[1]] = f"{commit.partition(',')[0]}, {recipe}"
    rows = [line for line in README.splitlines() if COMMAND.search(line) and line.startswith("|")]
    assert rows
    for line in rows:
        (command,) = COMMAND.findall(line)
        assert line.strip("| ").split(" | ")[-1] == measured_at[command], command


def test_the_papers_own_figures_are_the_same_in_table_and_page():
    from ltocf.studies.claims.table import PUBLISHED

    assert "{:.4f} / {:.4f}".format(*PUBLISHED["gowalla"]["ltocf"]) in PAPER + README


def test_a_row_of_the_search_has_the_recipe_of_today_or_says_that_it_is_of_an_earlier_one():
    """Change what the search tries and this fails: measure the row again, or call it earlier."""
    from benchmarks.recipes import recipe_digest

    rows = [line for line in RESULTS["search.md"].splitlines() if line.startswith("| ")]
    recipes = {
        command[1]: line.split(" | ")[-2] for line in rows if (command := COMMAND.search(line))
    }
    assert recipes
    for command, recipe in recipes.items():
        assert recipe in (recipe_digest(command), "earlier"), command


def test_the_digest_of_a_recipe_follows_settings_and_defaults(monkeypatch):
    from benchmarks.recipes import recipe_digest

    from ltocf.search.candidates import CANDIDATES

    search, other = "ltocf train gowalla --budget 30m", "ltocf train gowalla --budget 20m"
    before = recipe_digest(search)
    configured = recipe_digest("ltocf train gowalla --config gowalla-ltocf")
    assert recipe_digest("ltocf train yelp2018 --budget 30m") == before  # the data are no setting
    assert (
        len({before, recipe_digest(other), recipe_digest(f"{search} recency=0"), configured}) == 4
    )
    monkeypatch.setitem(CANDIDATES, "gfcf", CANDIDATES["popularity"])
    assert recipe_digest(search) != before
    assert recipe_digest("ltocf train gowalla --config gowalla-ltocf") == configured


def test_what_tables_call_published_is_what_the_paper_prints():
    """In the page of the baselines, and in the tables of the reports beside our figures."""
    from ltocf.studies.claims.table import NAMES, PUBLISHED

    rows = re.findall(
        r"^\| (\w+)-([\w-]+) \| .* \| (0\.\d{4} / 0\.\d{4}) \|$", RESULTS["baselines.md"], re.M
    )
    assert len(rows) == 24
    for data, model, printed in rows:
        assert printed == "{:.4f} / {:.4f}".format(*PUBLISHED[data][model]), (data, model)
    for data in ("gowalla", "yelp2018"):
        report = ROOT / "docs" / "results" / "paper" / data / "report.md"
        table = report.read_text(encoding="utf-8").partition("## table: ")[2]
        for model, (recall, ndcg) in PUBLISHED[data].items():
            line = next(li for li in table.splitlines() if li.startswith(f"| [{NAMES[model]}]"))
            cells = [cell.strip() for cell in line.split("|")]
            assert (cells[3], cells[6]) == (f"{recall:.4f}", f"{ndcg:.4f}"), (data, model)

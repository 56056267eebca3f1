"""What is published is what the code makes of the committed journal, and its figures are those once pinned."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from llpbench.report import Report, make_report, write_report
from llpbench.report.board_tables import names_of
from llpbench.results.journal import FILE, read
from llpbench.results.staleness import stale_runs

PUBLISHED = Path(__file__).parents[2] / "leaderboards"

PINNED = Path(__file__).parent / "published_figures.csv"
"""every figure of the leaderboards' pages as it was first published, read off the Markdown of that day"""

NAMES = ("method", "encoder", "pretraining", "configuration")


@pytest.fixture(scope="module")
def report() -> Report:
    contents = read(PUBLISHED / FILE)
    records, tunings = [*contents.records.values()], [*contents.tunings.values()]
    return make_report(records, stale=stale_runs(records), tunings=tunings)


@pytest.fixture(scope="module")
def written(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    write_report(report, folder)
    return folder


def test_the_published_files_are_what_the_code_makes_of_the_published_journal(written: Path) -> None:
    made = {path.name for path in written.iterdir()}
    assert {path.name for path in PUBLISHED.iterdir() if path.is_file() and path.name[0] != "."} == {*made, FILE}
    for name in made - {"index.html"}:  # which holds the plots
        assert (written / name).read_text(encoding="utf-8") == (PUBLISHED / name).read_text(encoding="utf-8"), name


def test_the_published_page_holds_the_same_boards_and_tables(report: Report, written: Path) -> None:
    bodies = [
        [part.split("</tbody>")[0] for part in (folder / "index.html").read_text(encoding="utf-8").split("<tbody>")[1:]]
        for folder in (written, PUBLISHED)
    ]
    assert len(bodies[0]) > len(report.leaderboards.boards)
    assert bodies[0] == bodies[1]


def test_every_published_figure_is_as_it_was(report: Report) -> None:
    with PINNED.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert figures(report) == [tuple(line.values()) for line in lines]


def figures(report: Report) -> list[tuple[str, ...]]:
    """Page, table, method, encoder, pretraining, configuration, column and figure, `**` around what is bold.

    Without the marks of runs that other code has made: they change no figure.
    """
    boards = tuple(f"{name}-" for name in names_of(report.leaderboards.boards))
    found = []
    for page in report.pages:
        for table in page.tables:
            if not table.name.startswith(boards):
                continue
            names = [heading.text for heading in table.headings]
            for row in table.rows:
                shown = {
                    name: f"**{field.lines[0]}**"
                    if field.strong
                    else "<br>".join(line for line in field.lines if not line.endswith(" stale"))
                    for name, field in zip(names, row, strict=True)
                }
                who = [shown.get(name, "") for name in NAMES]
                found += [
                    (page.name, table.name, *who, name, each) for name, each in shown.items() if name not in NAMES
                ]
    return found

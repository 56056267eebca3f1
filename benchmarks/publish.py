"""Write all published boards, pages and plots again: those of the suites, then the front page, which shows theirs.

`docs/generate.py` then writes the scores of `docs/methods.md`.

python -m benchmarks.publish
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llpbench import load_results
from llpbench.report import wording as words
from llpbench.report.board_tables import TITLE, Report
from llpbench.report.overview import Overview, Standings
from llpbench.report.publishing import Published
from llpbench.report.report_table import Field, Heading, Plot, ReportTable
from llpbench.report.statistics import MARGIN

BOARDS, PLOTS = Path("leaderboards"), Path("plots")

SUITES = {
    "core": "Core suite",
    "few-bags": "Few bags",
    "multiclass": "More than two classes",
    "natural": "Natural bags",
    "rare": "Rare classes",
}
"""Title of each suite, which is a folder of `leaderboards/`."""

FIGURE = "differences-coarse-mpiou-ordered"
"""Figure of core that the front page and the README show."""

Below = Mapping[str, Sequence[Standings]]
"""Boards of the suites, by folder."""

_CASES = (
    ("ordered bags", "core", "ordered"),
    ("random bags", "core", "random"),
    ("natural bags, rows of known bags", "natural", "natural"),
    ("natural bags, rows of new bags", "natural", "natural:split=bags"),
    ("few bags (20), ordered", "few-bags", "20 ordered"),
    ("rare classes, ordered bags", "rare", "ordered"),
)
"""Rows of "which method for which data": name, folder of the boards, and their bagging."""


def report(suite: str) -> Report:
    """Return the report of a suite; "" for the paper's datasets."""
    results = load_results(BOARDS / suite)
    metric = "average-precision" if suite == "rare" else "auc"
    return Report(results.ranked_by(metric), results.warnings, SUITES.get(suite, TITLE))


def front(paper: Report, below: Below, figure: Plot | None = None) -> Overview:
    """Return the overview of the front page: boards of core, of natural bags and of the paper's datasets.

    Boards with validation labels come last. `figure`: the first one.
    """
    first, *_ = map(Standings.of, paper.leaderboards.main_boards())
    sections = [
        *(
            _largest(below[folder], bagging).section(folder, folder.capitalize())
            for folder, bagging in (("core", "ordered"), ("core", "random"), ("natural", "natural"))
        ),
        first.section(name="The paper’s datasets"),
        _largest(below["core"], "ordered", has_labels=True).section("core", "Core"),
    ]
    titles = [f"{section.name}: {section.table.title.replace(': ', ', ').lower()}" for section in sections]
    tables = [
        replace(section.table, title=title, caption=section.text)
        for title, section in zip(titles, sections, strict=True)
    ]
    headline = _largest(below["core"], "ordered").headline
    return Overview(headline, sections, tables, _which_method(below), figure)


def _largest(boards: Iterable[Standings], bagging: str, *, has_labels: bool = False) -> Standings:
    """Return the board of a bagging with most ranked entries."""
    found = (board for board in boards if board.facts["bagging"] == bagging and board.has_labels == has_labels)
    return max(found, key=lambda board: len(board.ranked))


def _which_method(below: Below) -> ReportTable:
    """Return which method to take for which data."""
    cases = {case: _largest(below[folder], bagging) for case, folder, bagging in _CASES}
    similar = any(len(board.similar) for board in cases.values())
    columns = defaultdict[Heading, list[Field]](list)
    for case, board in cases.items():
        for heading, field in _case(case, board, similar=similar).items():
            columns[heading].append(field)
    terms = ("data", "score", *["similar"] * similar, "unrelated", "better")
    notes = {"Columns": [words.caption(f"which_{term}", margin=f"{MARGIN:g}") for term in terms]}
    return ReportTable("which", "Which method for my data?", words.caption("which"), [*columns.items()], notes)


def _case(case: str, board: Standings, *, similar: bool) -> dict[Heading, Field]:
    """Return the best method, with `similar` those that are as good, and the best method unrelated to it."""
    ranked = board.ranked
    other = ranked[ranked["first_points"].notna()][:1]
    unrelated = f"{board.labels(other)[0]} {other['mean'].iat[0]:.1f}" if len(other) else words.NOTHING
    as_good = {Heading("as good", numeric=False): Field(tuple(board.labels(board.similar)) or (words.NOTHING,))}
    worse = f"{len(board.worse)} of {len(board.compared)}" if len(board.compared) else "too few datasets"
    return {
        Heading("data", numeric=False): Field.text(case),
        Heading("highest mean", numeric=False): Field.text(board.labels(ranked[:1])[0]),
        Heading("score"): Field.text(f"{board.metric} {ranked['mean'].iat[0]:.1f}"),
        **(as_good if similar else {}),
        Heading("next outside its family", numeric=False): Field.text(unrelated),
        Heading("significantly better than", numeric=False): Field.text(worse),
        Heading("datasets"): Field.text(f"{board.facts['datasets']:.0f}"),
        Heading("in tests"): Field.text(str(board.facts["compared_over"]).partition(" ")[0]),
    }


def main() -> None:
    """Write the boards. Run this in the folder of the checkout."""
    below, figures = {}, {}
    for suite in SUITES:
        made, folder = report(suite), BOARDS / suite
        published = Published.write(made, folder, plots=folder / "plots", beside={TITLE: ".."})
        below[suite] = [*map(Standings.of, made.leaderboards.boards)]
        figures[suite] = {plot.name: plot for plot in published.figures}
        print(*published.places, sep="\n")
    caption = "Core. Blue and filled: significant after Holm's correction."
    figure = replace(figures["core"][FIGURE], title="Lead of the first method over the others", caption=caption)
    paper, beside = report(""), {title: suite for suite, title in SUITES.items()}
    published = Published.write(paper, BOARDS, plots=PLOTS, overview=front(paper, below, figure), beside=beside)
    print(*published.places, sep="\n")
    shutil.copyfile(BOARDS / "core" / "plots" / f"{FIGURE}.svg", "docs/images/differences-core.svg")
    subprocess.run([sys.executable, "docs/generate.py"], check=True)


if __name__ == "__main__":
    main()

"""Published files equal those made from the published journal, within rounding, and are small enough to read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from made import make_report
from pandas import read_csv
from pandas.testing import assert_frame_equal
from recomputed import board as recompute

from llpbench.core.record import Record, TuningRecord
from llpbench.report.board_tables import Report
from llpbench.report.overview import Overview, Standings
from llpbench.report.publishing import _readme, _standings_csv
from llpbench.results.merging import journal_files, merge

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "leaderboards"
PLOTS = ROOT / "plots"

ROUNDING = 0.011
"""how far two numbers of two digits may be apart: libraries differ in the last bits"""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class Published(NamedTuple):
    """The journal of a suite, and all that is made of it."""

    records: list[Record]
    tunings: list[TuningRecord]
    report: Report


@cache
def read_suite(name: str) -> Published:
    merged = merge(journal_files(str(PUBLISHED / name)))
    records, tunings = [*merged.counting.values()], [*merged.tunings.values()]
    metric = "average-precision" if name == "rare" else "auc"
    return Published(records, tunings, make_report(records, tunings=tunings, metric=metric))


@pytest.fixture(scope="module")
def published() -> Iterator[Published]:
    yield read_suite("")
    read_suite.cache_clear()


@pytest.mark.parametrize(
    ("suite", "name", "criterion", "bagging"),
    [
        ("", "fine-ordered", "auc", "ordered"),
        ("", "coarse-mpiou-ordered", "mpiou", "ordered"),
        ("", "coarse-l1-ordered", "l1", "ordered"),
        ("", "fine-random", "auc", "random"),
        ("core", "fine-ordered", "auc", "ordered"),
        ("core", "fine-random", "auc", "random"),
    ],
)
@pytest.mark.usefixtures("published")
def test_published_boards_match_independent_recomputation(suite: str, name: str, criterion: str, bagging: str) -> None:
    records, tunings, report = read_suite(suite)
    expected = recompute(records, tunings, criterion, bagging)
    (board,) = (board for board, its_name in report.leaderboards.names.items() if its_name == name)
    assert len(board.datasets) >= (17 if suite == "core" else 1)
    found = {}
    for entry in board.entries.itertuples():
        overall = Standings.of(board).lines[["mean", "std", "n"]].loc[entry.Index].fillna(0)
        if overall["n"] and not entry.is_tuned:
            ours = (*overall, entry.rank or 0)
            found[entry.method, entry.encoder or "", entry.pretraining, entry.configuration] = ours
    assert len(found) >= (13 if suite == "core" else 9)
    assert found.keys() <= set(expected.index)
    assert suite or found.keys() == set(expected.index)
    for label, values in found.items():
        theirs = expected.fillna(0).loc[label, ["mean", "std", "n", "rank"]]
        assert values == pytest.approx(tuple(theirs), abs=1e-6), label


@pytest.mark.parametrize("suite", ["", "core", "natural", "multiclass", "few-bags", "rare"])
@pytest.mark.usefixtures("published")
def test_published_csv_is_current(suite: str) -> None:
    made = _standings_csv(read_suite(suite).report.leaderboards)
    assert_frame_equal(read_csv(PUBLISHED / suite / "boards.csv"), read_csv(StringIO(made)), atol=1e-5)


def test_readme_paper_column_matches_records(published: Published) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expected = recompute(published.records, published.tunings, "mpiou", "ordered")
    best = expected["mean"].groupby(level=0).max()
    rows = re.findall(r"^\| ([\w-]+)[\w() ]* \| [\w, ]+ \|.*\| (\d+\.\d) \|$", readme, re.MULTILINE)
    assert len(rows) >= 4
    for method, mean in rows:
        assert float(mean) == pytest.approx(best[method], abs=0.0501), method


BESIDE = {
    "Core suite": "core",
    "Few bags": "few-bags",
    "More than two classes": "multiclass",
    "Natural bags": "natural",
    "Rare classes": "rare",
}


def overview_of(report: Report) -> Overview:
    below = {folder: Standings.read(PUBLISHED / folder / "boards.csv") for folder in BESIDE.values()}
    return Overview.of(report.leaderboards.main_boards(), below)


def test_published_markdown_is_current(published: Published) -> None:
    line = next(line for line in (PUBLISHED / "README.md").read_text().splitlines() if line.startswith("- Figures: "))
    figures = dict(re.findall(r"\[([^]]+)\]\(([^)]+)\)", line))
    assert {(PUBLISHED / path).resolve() for path in figures.values()} == {*PLOTS.resolve().glob("*.svg")}
    made = _readme(published.report, overview_of(published.report), BESIDE, figures)
    committed = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    assert _words(committed) == _words(made)
    assert _numbers(committed) == pytest.approx(_numbers(made), abs=ROUNDING)


def test_published_files_are_small() -> None:
    assert [path.name for path in PUBLISHED.glob("*.md")] == ["README.md"]
    assert (PUBLISHED / "README.md").stat().st_size <= 30_000
    assert (PUBLISHED / "index.html").stat().st_size <= 2_000_000
    assert {path.suffix for path in PLOTS.glob("[!.]*")} == {".svg"}
    assert 5 < len(list(PLOTS.glob("*.svg"))) <= 10
    assert sum(path.stat().st_size for path in PLOTS.iterdir()) <= 1_000_000
    assert [path.name for path in PUBLISHED.glob("*.csv")] == ["boards.csv"]


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def _words(text: str) -> Sequence[str]:
    """All but its numbers, and but for signs, which a number that is nearly 0 may change."""
    return [re.sub(r"\s+|[+-]", " ", part).strip() for part in _NUMBER.split(text)]

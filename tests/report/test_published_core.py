"""The boards of the suite `core` and of natural bags are what their journals say; core's are recomputed apart."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from pandas import read_csv
from pandas.testing import assert_frame_equal
from recomputed import board as recompute

from llpbench.core.record import Record
from llpbench.report import Report, make_report
from llpbench.report.board_tables import names_of
from llpbench.report.exports import rows_csv, standings_rows
from llpbench.report.leaderboard import standings
from llpbench.results.merging import journal_files, merge

CORE = Path(__file__).parents[2] / "leaderboards" / "core"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [*merge(journal_files(str(CORE))).records.values()]


@pytest.fixture(scope="module")
def report(records: list[Record]) -> Report:
    return make_report(records)


def test_its_standings_are_those_that_the_code_makes(report: Report) -> None:
    committed = read_csv(CORE / "boards.csv")
    assert_frame_equal(committed, read_csv(StringIO(rows_csv(standings_rows(report.leaderboards)))), atol=1e-5)


@pytest.mark.parametrize(
    ("suite", "metric"),
    [("natural", "auc"), ("multiclass", "auc"), ("few-bags", "auc"), ("rare", "average-precision")],
)
def test_standings_of_other_suites_are_those_that_the_code_makes(suite: str, metric: str) -> None:
    folder = CORE.parent / suite
    made = make_report([*merge(journal_files(str(folder))).records.values()], metric=metric).leaderboards
    assert_frame_equal(read_csv(folder / "boards.csv"), read_csv(StringIO(rows_csv(standings_rows(made)))), atol=1e-5)


@pytest.mark.parametrize("bagging", ["ordered", "random"])
def test_its_main_boards_are_what_the_records_say(records: list[Record], report: Report, bagging: str) -> None:
    expected, _ = recompute(records, [], "auc", bagging)
    boards = report.leaderboards.boards
    board = dict(zip(names_of(boards), boards, strict=True))[f"fine-{bagging}"]
    assert len(board.datasets) >= 17
    found = 0
    for place, row in enumerate(board.rows):
        if (overall := standings(board)["mean"].loc[place].fillna(0))["n"]:
            one = row.contender
            label = (one.method, one.encoder or "", one.pretraining, one.configuration)
            theirs = expected.fillna(0).loc[label, ["mean", "std", "n", "rank"]]
            assert (*overall, row.rank or 0) == pytest.approx(tuple(theirs), abs=1e-6), label
            found += 1
    assert found >= 13

"""Report of a journal: leaderboards and the tables that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from llpbench.core.record import Record, TuningRecord
from llpbench.report.board_tables import names_of, robustness_table, unlabelled_table
from llpbench.report.boards import HEADLINE, Leaderboards
from llpbench.report.report_table import ReportTable
from llpbench.report.tabulate import tabulate
from llpbench.results.frame import NO_STALE_RUNS

TITLE = "Leaderboards"


@dataclass(frozen=True)
class Report:
    """Content of a report, without its files."""

    leaderboards: Leaderboards
    warnings: tuple[str, ...] = ()
    """problems of the journal"""
    title: str = TITLE

    @cached_property
    def robustness(self) -> list[ReportTable]:
        """Robustness rankings of the boards without labels of rows."""
        boards = self.leaderboards.headline_boards()
        tables = [robustness_table(board, name) for board, name in zip(boards, names_of(boards), strict=True)]
        return [table for table in tables if table is not None]

    @property
    def unlabelled(self) -> list[ReportTable]:
        """Boards of datasets without labels."""
        boards = self.leaderboards.unlabelled
        return [unlabelled_table(board, name) for board, name in zip(boards, names_of(boards), strict=True)]


def make_report(
    records: Sequence[Record],
    *,
    warnings: Sequence[str] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
    title: str = TITLE,
) -> Report:
    """Return the report of some records.

    The order of records matters only for records of the same run: the last one counts. `stale`: what has changed in the
    code since a run or search, by its id. `tunings`: searches, whose choices are additional entries. `metric`: what
    boards show and rank by.
    """
    return Report(tabulate(records, stale=stale, tunings=tunings, metric=metric), tuple(warnings), title)

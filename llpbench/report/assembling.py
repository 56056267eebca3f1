"""Everything that a journal has to say: its leaderboards, and the tables that are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from llpbench.core.record import Record, TuningRecord
from llpbench.core.studies import STUDIES
from llpbench.report.advice import advice
from llpbench.report.bag_only import bag_only
from llpbench.report.board_tables import names_of, overall, whole
from llpbench.report.boards import HEADLINE, Leaderboards
from llpbench.report.report_table import ReportTable
from llpbench.report.study_tables import Figure, study_tables
from llpbench.report.tabulate import tabulate
from llpbench.report.tuning_tables import tuning_gains, tuning_order
from llpbench.results.frame import NO_STALE_RUNS

TITLE = "Leaderboards"


@dataclass(frozen=True)
class Report:
    """Everything that is made of a journal, but for its files."""

    leaderboards: Leaderboards
    records: tuple[Record, ...] = ()
    """each run once"""
    stale: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """what a reader must know of the journal itself"""
    title: str = TITLE

    @cached_property
    def advice(self) -> ReportTable | None:
        """Which method for which bags; None where methods cannot be compared."""
        return advice(self.leaderboards)

    @cached_property
    def tuning(self) -> list[ReportTable]:
        """The tables of what searches have changed."""
        boards, tunings = self.leaderboards.boards, self.leaderboards.tunings
        names = [each for each in zip(boards, names_of(boards), strict=True) if each[0].max_bags is None]
        found = [make(board, tunings, name) for make in (tuning_order, tuning_gains) for board, name in names]
        return [table for table in found if table is not None]

    @property
    def unlabelled(self) -> list[ReportTable]:
        """The tables of datasets without labels."""
        boards = self.leaderboards.unlabelled
        return [bag_only(*each) for each in zip(boards, names_of(boards), strict=True)]

    def tables(self) -> Iterator[ReportTable]:
        """Every table: whole boards, advice, tuning, and studies beside the paper."""
        boards = self.leaderboards.boards
        for board, name in zip(boards, names_of(boards), strict=True):
            yield whole(board, overall(board, name))
        yield from (*filter(None, [self.advice]), *self.tuning, *self.unlabelled)
        flagged = set[Figure]()
        for study in STUDIES.values():
            yield from study_tables(study, self.records, stale=self.stale, flagged=flagged)


def make_report(
    records: Sequence[Record],
    *,
    warnings: Sequence[str] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
    title: str = TITLE,
) -> Report:
    """Everything that `records` have to say.

    It depends on the arguments alone, not on the order of records (but for two of one run: the last one counts).
    `stale`: by run id, what has changed in the code since the run was made, for which it is marked. `tunings`: whose
    choices are rows of their own. `metric`: what boards show and rank by. `title`: of the page.
    """
    leaderboards = tabulate(records, stale=stale, tunings=tunings, metric=metric)
    latest = {record["run"]: record for record in records}
    return Report(leaderboards, tuple(latest.values()), stale, tuple(warnings), title)

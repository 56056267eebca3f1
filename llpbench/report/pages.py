"""Every table that boards and studies fill, by what it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from llpbench.core.record import Record
from llpbench.core.studies import Study
from llpbench.report import board_tables, further_tables
from llpbench.report.advice import ADVICE, advice
from llpbench.report.bag_only import BAG_ONLY, bag_only
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.report_table import ReportTable
from llpbench.report.study_tables import Figure, study_tables, what_to_run
from llpbench.report.tuning_order import tuning_order
from llpbench.report.tuning_tables import tuning_gains
from llpbench.results.frame import NO_STALE_RUNS


@dataclass(frozen=True)
class Page:
    """Tables of one matter."""

    name: str
    title: str
    tables: tuple[ReportTable, ...]
    missing: tuple[str, ...] = ()
    """what has not run yet, and how to run it"""


@dataclass(frozen=True)
class Report:
    """Everything that is made of a journal, but for its files."""

    leaderboards: Leaderboards
    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = ()
    """what a reader must know of the journal itself"""

    @property
    def tables(self) -> list[ReportTable]:
        """Every table of its pages."""
        return [table for page in self.pages for table in page.tables]


def study_page(
    studies: Iterable[Study], records: Sequence[Record], *, stale: Mapping[str, str] = NO_STALE_RUNS
) -> Page:
    """The paper's tables, ours beside them; studies of which nothing has run say how to run them."""
    tables: list[ReportTable] = []
    missing = []
    flagged: set[Figure] = set()
    for study in studies:
        found = study_tables(study, records, stale=stale, flagged=flagged)
        tables += found
        if not found:
            missing.append(f"{study.title}: {what_to_run(study)}")
    return Page("studies", "Studies: the paper and ours", tuple(tables), tuple(missing))


def pages(leaderboards: Leaderboards) -> list[Page]:
    """Every page that the boards fill, all in the order in which a reader wants them."""
    boards = leaderboards.boards
    names = {id(board): name for board, name in zip(boards, board_tables.names_of(boards), strict=True)}

    every_bag = any(board.max_bags is None for board in boards)

    def has_further(of_board: tuple[Board, str]) -> bool:
        """Not what has run on fewer bags than there are, if all else has not: a study's, which has its own tables."""
        return of_board[0].max_bags is None or not every_bag

    def of(criterion: str) -> list[tuple[Board, str]]:
        return [(board, names[id(board)]) for board in boards if board.criterion.name == criterion]

    found = [
        Page(
            board_tables.SHORT[criterion],
            f"Leaderboards: {title}",
            tuple(table for board, name in of(criterion) for table in board_tables.board_tables(board, name)),
        )
        for criterion, title in (
            ("auc", "fine-grained validation"),
            ("mpiou", "coarse-grained validation by mPIoU"),
            ("l1", "coarse-grained validation by L1"),
        )
    ]
    fine, coarse = ([*filter(has_further, each)] for each in (of("auc"), [*of("mpiou"), *of("l1")]))
    every = [*fine, *coarse]

    def each(make: Callable[[Board, str], ReportTable | None]) -> list[ReportTable]:
        return [table for of_board in every if (table := make(*of_board))]

    which = advice(leaderboards)
    unlabelled = zip(leaderboards.unlabelled, board_tables.names_of(leaderboards.unlabelled), strict=True)
    others = {
        "selection-gap": (
            "Selection gap",
            [
                further_tables.selection_gap(board, other, name)
                for board, _ in fine
                for other, name in coarse
                if (other.bagging, other.protocol) == (board.bagging, board.protocol) and board.protocol is not None
            ],
        ),
        "gap-closed": ("Gap closed", each(further_tables.gap_closed)),
        "robustness": ("Robustness", each(further_tables.robustness)),
        "calibration": ("Calibration", each(further_tables.calibration)),
        "timing": (
            "Time and memory",
            [
                further_tables.timing(board, size, name.removeprefix("fine-"))
                for board, name in fine
                for size in sorted({column.bag_size for column in board.columns})
            ],
        ),
        "statistics": (
            "Statistics",
            [table for board, name in every for table in further_tables.statistics_tables(board, name)],
        ),
        ADVICE: (which.title if which else "", [which] if which else []),
        "known-bags": ("Rows of known bags", [*each(further_tables.known_bags), *each(further_tables.whole_bags)]),
        BAG_ONLY: ("Datasets without labels", [bag_only(*of_board) for of_board in unlabelled]),
        "tuning": (
            "Tuning",
            [
                *each(lambda board, name: tuning_order(board, leaderboards.tunings, name)),
                *each(lambda board, name: tuning_gains(board, leaderboards.tunings, name)),
            ],
        ),
    }
    always = [*others][:6]
    return found + [
        Page(name, title, tuple(tables)) for name, (title, tables) in others.items() if tables or name in always
    ]

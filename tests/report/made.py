"""Boards of few records, for tests that need one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from factory import fine_alone
from pandas import isna

from llpbench.core.record import Record
from llpbench.report.board_tables import TITLE, Report
from llpbench.report.boards import Board
from llpbench.report.tabulate import Leaderboards


def make_report(records: Sequence[Record], warnings: Sequence[str] = (), title: str = TITLE, **facts: Any) -> Report:
    """Return the report of records. `facts`: as for `Leaderboards.of`."""
    return Report(Leaderboards.of(records, **facts), tuple(warnings), title)


def fine_boards(records: Iterable[Record], **facts: Any) -> list[Board]:
    """Return the boards whose epochs are chosen by labels."""
    return [board for board in Leaderboards.of(fine_alone(records), **facts).boards if board.criterion.name == "auc"]


def fine(records: Iterable[Record], **facts: Any) -> Board:
    """Return the first of them."""
    return fine_boards(records, **facts)[0]


def summary(board: Board, entry: int = 0, task: int = 0) -> tuple[float, float | None, int]:
    """Return mean, standard deviation (None for a single seed) and number of values of a score."""
    found = board.scores.loc[(entry, task)]
    return found["mean"], None if isna(found["std"]) else found["std"], int(found["values"])

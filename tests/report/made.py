"""Boards of few records, for tests that need one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from factory import fine_alone

from llpbench.core.record import Record
from llpbench.report.boards import Board
from llpbench.report.tabulate import tabulate


def fine_boards(records: Iterable[Record], **facts: Any) -> list[Board]:
    """Return the boards whose epochs are chosen by labels."""
    return [board for board in tabulate(fine_alone(records), **facts).boards if board.criterion.name == "auc"]


def fine(records: Iterable[Record], **facts: Any) -> Board:
    """Return the first of them."""
    return fine_boards(records, **facts)[0]

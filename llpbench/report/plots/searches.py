"""The searches behind a board, and what their plots have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llpbench.core.criteria import CRITERIA, GUIDES, Criterion
from llpbench.core.record import TuningRecord
from llpbench.report.boards import Board, Column, Row
from llpbench.report.plots import layout

MOST_FIGURES = 6


@dataclass(frozen=True)
class Searched:
    """The searches of a board: a row for each method, a search or nothing for each column."""

    labels: list[str]
    columns: list[Column]
    searches: list[list[TuningRecord | None]]
    """by row and column"""


def searched(board: Board, tunings: Sequence[TuningRecord]) -> Searched | None:
    """The searches whose choices are on a board; None if nothing on it was tuned."""
    known = {tuning["tuning"]: tuning for tuning in tunings}
    rows = [row for row in board.rows if row.contender.tuned]
    by_row = [[known.get(score.tuning or "") for score in row.scores] for row in rows]
    places = [place for place in range(len(board.columns)) if any(each[place] for each in by_row)]
    if not places:
        return None
    return Searched(
        labels=_labels(rows),
        columns=[board.columns[place] for place in places],
        searches=[[each[place] for place in places] for each in by_row],
    )


def _labels(rows: Sequence[Row]) -> list[str]:
    """The method, where that tells a row from all others."""
    methods = Counter(row.contender.method for row in rows)
    whole = layout.labels(rows)
    return layout.shown_apart(
        [row.contender.method if methods[row.contender.method] == 1 else whole[row.contender] for row in rows]
    )


def guide_of(board: Board) -> Criterion:
    """What guided the searches whose choices are on a board."""
    return CRITERIA[GUIDES[board.criterion.regime]]


def part_note(number: int, parts: int) -> str:
    """Which of several figures one is, as a sentence; "" if it is the only one."""
    return layout.sentences(
        f"Part {number} of {parts}." if parts > 1 else "",
        f"Only {MOST_FIGURES} parts are drawn." if parts > MOST_FIGURES else "",
    )

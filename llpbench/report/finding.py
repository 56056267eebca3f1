"""What a board says, in one sentence: who is first, by how much, and how sure that is."""

from __future__ import annotations

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.advice import kind
from llpbench.report.boards import FEWEST_BAGS, Board
from llpbench.report.standings import Standing


def finding(board: Board) -> str:
    """The first row of a board, its distance from the floor, and how many rows cannot be told apart from it."""
    ranked = [
        (row, standing) for row, standing in zip(board.rows, board.standings.rows, strict=True) if row.rank is not None
    ]
    if not ranked and board.columns and not any(column.counts for column in board.columns):
        few = [column.validation for column in board.columns if column.validation is not None]
        most = f", got {max(least for least, _ in few)} at most" if few else ""
        return f"Nothing is ranked: a coarse criterion needs {FEWEST_BAGS} validation bags{most}. Choose smaller bags."
    if not ranked:
        return "Nothing is ranked: no method has completed the runs that the others share."
    (first, place), *others = ranked
    where = f"On bags of {plural(len(board.standings.datasets), 'dataset')} ({words.clean(kind(board))})"
    found = f"{where}, {words.clean(first.contender.label)} has the highest mean AUC"
    if place.overall is not None:
        found += f", {place.overall.mean:.2f}"
    if place.floor is not None:
        found += f", which is {words.interval_text(place.floor.mean, place.floor.interval, sign='+')} against the floor"
    return f"{found}{_sure(place, [standing for _, standing in others])}."


def _sure(first: Standing, others: list[Standing]) -> str:
    if not others:
        return ", and there is no other row to compare it with"
    if not first.letters:
        return ", which too few runs back to tell rows apart"
    tied = sum(bool({*first.letters} & {*other.letters}) for other in others)
    if len(others) == 1:
        return f"; the other row {'cannot' if tied else 'can'} be told apart from it"
    if not tied:
        return f", and all {plural(len(others), 'other row')} can be told apart from it"
    if tied == len(others):
        return f"; none of the {plural(tied, 'other row')} can be told apart from it"
    return f"; {tied} of the {plural(len(others), 'other row')} cannot be told apart from it"

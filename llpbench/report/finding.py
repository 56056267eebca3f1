"""What a board says, in one sentence: who is first, by how much, and how sure that is."""

from __future__ import annotations

from math import isfinite

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.advice import kind
from llpbench.report.boards import FEWEST_BAGS, Board
from llpbench.report.leaderboard import interval_of, standings


def finding(board: Board) -> str:
    """The first row of a board, its distance from the floor, and how many rows do not differ significantly from it."""
    if not board.ranked:
        return leader(board)
    found = standings(board)
    return f"{leader(board)}{_sure([found.at[place, ('tie', '')] for place in board.ranked])}."


def leader(board: Board) -> str:
    """The first row of a board and its distance from the floor, without a full stop; or why there is none."""
    if not board.ranked and board.columns and not any(column.counts for column in board.columns):
        few = [column.validation for column in board.columns if column.validation is not None]
        most = f", got {max(least for least, _ in few)} at most" if few else ""
        return f"Nothing is ranked: a coarse criterion needs {FEWEST_BAGS} validation bags{most}. Choose smaller bags."
    if not board.ranked:
        return "Nothing is ranked: no method has completed the runs that the others share."
    first = board.ranked[0]
    found, metric = standings(board), board.metric
    best, floor = found.loc[first, "mean"], found.loc[first, "floor"]
    where = f"On bags of {plural(len(board.datasets), 'dataset')} ({words.clean(kind(board))})"
    which = "highest" if metric.maximise else "lowest"
    label = words.clean(board.rows[first].contender.label)
    told = f"{where}, {label} has the {which} mean {metric.title}, {best['mean']:.2f}"
    if isfinite(floor["points"]):
        told += f", which is {interval_of(floor, 'points', 1, '+')} against the floor"
    return told


def _sure(letters: list[str]) -> str:
    first, *others = letters
    if not others:
        return ", and there is no other row to compare it with"
    if not isinstance(first, str):
        return ", but too few runs to say whether rows differ"
    tied = sum(bool({*first} & {*other}) for other in others)
    if len(others) == 1:
        return f"; the other row {'does not differ' if tied else 'differs'} significantly from it"
    if not tied:
        return f", and all {plural(len(others), 'other row')} differ significantly from it"
    if tied == len(others):
        return f"; none of the {plural(tied, 'other row')} differs significantly from it"
    return f"; {tied} of the {plural(len(others), 'other row')} do not differ significantly from it"

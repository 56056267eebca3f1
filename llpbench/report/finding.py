"""The finding of a board in one sentence: the first method, its lead, and how certain the lead is."""

from __future__ import annotations

from math import isfinite

from llpbench.core.text import plural
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import FEWEST_BAGS, Board
from llpbench.report.leaderboard import blocks, interval_of, is_even, standings


def finding(board: Board, *, tested: bool = True) -> str:
    """Return who is first on a board, by how much, and how many rows differ significantly.

    Without `tested` it says nothing of other rows: datasets or seeds are too few to test differences.
    """
    few = [column.validation for column in board.columns if column.validation is not None]
    counts = any(column.counts for column in board.columns)
    facts = {"few_bags": None if counts else max((least for least, _ in few), default=0), "needed": FEWEST_BAGS}
    if not board.ranked or not counts:
        return words.caption("finding", board, **facts, first="")
    first, *others = board.ranked
    found = standings(board)
    floor = found.loc[first, "floor"]
    letters = [found.at[place, ("tie", "")] for place in board.ranked]
    known = isinstance(letters[0], str)
    return words.caption(
        "finding",
        board,
        **facts,
        first=words.clean(board.rows[first].contender.label),
        bags=words.clean(words.bags_words(board.bagging)),
        datasets=plural(len(board.datasets), "dataset"),
        which="highest" if board.metric.maximise else "lowest",
        best=found.at[first, ("mean", "mean")],
        floor=interval_of(floor, "points", 1, "+") if isfinite(floor["points"]) else "",
        network=_against_network(board) if tested else None,
        others=len(others),
        tied=sum(bool({*letters[0]} & {*other}) for other in letters[1:]) if known and tested else None,
    )


def _against_network(board: Board) -> tuple[str, str] | None:
    """Label of the best network that is not first, and how far the first row is ahead of it; None without any."""
    first, *others = board.ranked
    row = next((n for n in others if board.rows[n].contender.kind == "neural" and not board.rows[n].mark), None)
    if row is None or board.rows[first].contender.kind == "neural":
        return None
    differences = blocks(board, board.ranked)[first] - blocks(board, board.ranked)[row]
    ends = statistics.interval(differences) if is_even(board) else None
    told = words.interval_text(differences.mean(), ends if ends and isfinite(ends[0]) else None, sign="+")
    return words.clean(board.rows[row].contender.label), told

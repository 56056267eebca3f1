"""Main finding of a board in one sentence: the first method, its lead, and how certain the lead is."""

from __future__ import annotations

from math import isfinite

from llpbench.core.text import plural
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import blocks, interval_of, is_even, standings


def finding(board: Board, *, tested: bool = True) -> str:
    """Return the first method of a board, its lead, and the number of entries that differ significantly.

    With `tested=False` other entries are not mentioned: datasets or seeds are too few to test differences.
    """
    bags = [bags for bags in board.tasks["least_validation"] if bags is not None]
    few_bags = None if board.tasks["counts"].any() else max(bags, default=0)
    if not board.ranked or few_bags is not None:
        return words.caption("finding", board, few_bags=few_bags, first="")
    first, *others = board.ranked
    columns = standings(board)
    floor = columns.loc[first, "floor"]
    letters = [columns.at[place, ("tie", "")] for place in board.ranked]
    has_letters = tested and isinstance(letters[0], str)
    return words.caption(
        "finding",
        board,
        few_bags=few_bags,
        first=words.clean(board.labels[first]),
        bags=words.clean(words.bags_words(board.bagging)),
        datasets=plural(len(board.datasets), "dataset"),
        best=columns.at[first, ("mean", "mean")],
        floor=interval_of(floor, "points", 1, "+") if isfinite(floor["points"]) else "",
        network=_lead_over_network(board) if tested else None,
        others=len(others),
        tied=sum(bool({*letters[0]} & {*other}) for other in letters[1:]) if has_letters else None,
    )


def _lead_over_network(board: Board) -> tuple[str, str] | None:
    """Return the label of the best network, and the lead of a first entry that is not a network."""
    first, *others = board.ranked
    kinds, marks = board.entries["kind"], board.entries["mark"]
    network = next((entry for entry in others if kinds[entry] == "neural" and not marks[entry]), None)
    if network is None or kinds[first] == "neural":
        return None
    independent = blocks(board, board.ranked)
    lead = independent[first] - independent[network]
    ends = statistics.interval(lead) if is_even(board) else (float("nan"),) * 2
    return (
        words.clean(board.labels[network]),
        words.interval_text(lead.mean(), ends if isfinite(ends[0]) else None, sign="+"),
    )

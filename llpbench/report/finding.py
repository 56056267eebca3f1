"""Main finding of a board in one sentence: the first method, and how many others differ significantly from it."""

from __future__ import annotations

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import differing, mean, reference


def finding(board: Board, *, tested: bool = True) -> str:
    """Return the first method of a board beside floor and best network, and how many entries differ significantly.

    With `tested=False` differences are not mentioned.
    """
    bags = [bags for bags in board.tasks["least_validation"] if bags is not None]
    few_bags = None if board.tasks["counts"].any() else max(bags, default=0)
    if not board.ranked or few_bags is not None:
        return words.caption("finding", board, few_bags=few_bags, first="")
    first, *others = board.ranked
    floor, network, means = reference(board, first, "floor"), _best_network(board), mean(board)["mean"]
    beside = {"floor": floor, f"best network, {board.labels[network or 0]},": network}
    worse = differing(board) if tested else None
    return words.caption(
        "finding",
        board,
        few_bags=few_bags,
        first=words.clean(board.labels[first]),
        bags=words.clean(words.bags_words(board.bagging)),
        datasets=plural(len(board.datasets), "dataset"),
        best=means[first],
        beside=[(words.clean(name), means[n]) for name, n in beside.items() if n in means.index and n != first],
        others=len(others),
        differing=None if worse is None else len(worse),
    )


def _best_network(board: Board) -> int | None:
    """Return the best network on a board whose first entry is not one."""
    kinds, marks = board.entries["kind"], board.entries["mark"]
    network = next((entry for entry in board.ranked if kinds[entry] == "neural" and not marks[entry]), None)
    return None if network == board.ranked[0] else network

"""Boards that belong together, in the order of how much stands behind them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

from llpbench.report.boards import Board, Leaderboards


def groups(leaderboards: Leaderboards) -> list[dict[str, Board]]:
    """Boards of one bagging and protocol, by criterion: first those of all bags, then those with most runs."""
    found: dict[tuple[str, str], dict[str, Board]] = defaultdict(dict)
    for board in leaderboards.boards:
        found[board.bagging, json.dumps(board.protocol, sort_keys=True)][board.criterion.name] = board

    def place(group: Mapping[str, Board]) -> tuple[bool, int]:
        board = next(iter(group.values()))
        # what has run on fewer bags is compared with what has run on more: a study shows both
        return board.max_bags is not None, -_runs(board)

    return sorted(found.values(), key=place)


def _runs(board: Board) -> int:
    return sum(len(score.runs) for row in board.rows for score in row.scores)


def main_boards(leaderboards: Leaderboards) -> list[Board]:
    """The boards that a reader wants first: of the first two groups, by labels and, with epochs, by proportions."""
    found = [(name, group[name]) for group in groups(leaderboards)[:2] for name in ("auc", "mpiou") if name in group]
    return [board for place, (name, board) in enumerate(found) if not place or name == "auc" or board.protocol]

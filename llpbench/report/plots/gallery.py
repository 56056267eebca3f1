"""Which plots are drawn of which boards."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from llpbench.report.board_tables import name_of
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.plots.arms import study_arms
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.critical import critical_difference
from llpbench.report.plots.heat_map import heat_maps
from llpbench.report.plots.learning import learning_curves
from llpbench.report.plots.proportions import proportions
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import robustness
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.search_history import search_histories
from llpbench.report.plots.search_importance import search_importances
from llpbench.report.plots.time import time

MOST_GROUPS = 3
"""of bagging and protocol: a journal may hold any number of them, a gallery may not"""

CRITERIA = ("auc", "mpiou")
"""whose boards are drawn: one of each regime; tables have them all"""


def drawings(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Every plot that there is data for, each drawn when it is asked for."""
    taken: set[str] = set()
    for drawing in _drawings(leaderboards):
        name = _untaken(drawing.about.name, taken)
        taken.add(name)
        yield replace(drawing, about=replace(drawing.about, name=name))


def _untaken(name: str, taken: set[str]) -> str:
    """The name itself, or with a number: baggings or datasets whose names differ in signs alone would share a file."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def _drawings(leaderboards: Leaderboards) -> Iterator[Drawing]:
    groups: dict[tuple[str, str], list[Board]] = defaultdict(list)
    for board in leaderboards.boards:
        groups[board.bagging, json.dumps(board.protocol, sort_keys=True)].append(board)
    # what has run on fewer bags is to be compared with what has run on more: a study draws both
    largest = sorted(groups, key=lambda group: (groups[group][0].max_bags or 0, -_runs(groups[group][0])))[:MOST_GROUPS]
    note = (
        f"Of {len(groups)} pairs of bagging and protocol the {MOST_GROUPS} with most runs are drawn."
        if len(groups) > MOST_GROUPS
        else ""
    )
    for group in groups:
        if group in largest:
            for drawing in _of_group(groups[group], leaderboards):
                caption = f"{drawing.about.caption} {note}".rstrip()
                yield replace(drawing, about=replace(drawing.about, caption=caption))
    yield from proportions(leaderboards)
    yield from study_arms(leaderboards)


def _of_group(boards: list[Board], leaderboards: Leaderboards) -> Iterator[Drawing]:
    for board in boards:
        name = name_of(board, leaderboards.boards)
        if board.criterion.name in CRITERIA:
            yield from bag_size_curves(board, name)
            yield from time(board, name)
            yield from critical_difference(board, name)
            yield from robustness(board, name)
            yield from reliability(board, name)
            yield from heat_maps(board, name)
            yield from search_histories(board, leaderboards.tunings, name)
            yield from search_importances(board, leaderboards.tunings, name)
        if board.criterion.name == CRITERIA[0]:
            yield from learning_curves(board, name)


def _runs(board: Board) -> int:
    return sum(len(score.runs) for row in board.rows for score in row.scores)

"""Which plots are drawn of which boards."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from llpbench.report import wording as words
from llpbench.report.board_tables import names_of
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.plots.arms import study_arms
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.critical import critical_difference
from llpbench.report.plots.heat_map import heat_maps
from llpbench.report.plots.learning import learning_curves
from llpbench.report.plots.pretraining_gain import pretraining
from llpbench.report.plots.proportions import proportions
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import robustness
from llpbench.report.plots.saving import Drawing, Part
from llpbench.report.plots.search_history import search_histories
from llpbench.report.plots.search_importance import search_importances
from llpbench.report.plots.time import time

MOST_GROUPS = 5
"""of bagging and protocol: a journal may hold any number of them, a gallery may not"""

CRITERIA = ("auc", "mpiou")
"""whose boards are drawn: one of each regime; tables have them all"""


def drawings(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Every plot that there is data for, each drawn when it is asked for."""
    for part in parts(leaderboards):
        yield from part()


def parts(leaderboards: Leaderboards) -> list[Part]:
    """Every kind of plot of every board that is drawn, each drawn when it is called."""
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
    names = {id(board): name for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True)}
    found = [
        partial(_told, draw, board, note)
        for group in groups
        if group in largest
        for board in groups[group]
        for draw in _of_board(board, names[id(board)], leaderboards)
    ]
    return [*found, partial(proportions, leaderboards), partial(study_arms, leaderboards)]


def _told(draw: Part, board: Board, note: str) -> Iterator[Drawing]:
    """The drawings of a part, with what is true of all of a board."""
    for drawing in draw():
        caption = f"{drawing.about.caption} {note}".rstrip()
        about = replace(drawing.about, caption=caption, protocol=words.protocol_text(board.protocol))
        yield replace(drawing, about=about)


def _of_board(board: Board, name: str, leaderboards: Leaderboards) -> Iterator[Part]:
    if board.criterion.name in CRITERIA:
        for draw in (bag_size_curves, time, critical_difference, robustness, reliability, heat_maps, pretraining):
            yield partial(draw, board, name)
        for of_searches in (search_histories, search_importances):
            yield partial(of_searches, board, leaderboards.tunings, name)
    if board.criterion.name == CRITERIA[0]:
        yield partial(learning_curves, board, name)


def _runs(board: Board) -> int:
    return sum(len(score.runs) for row in board.rows for score in row.scores)

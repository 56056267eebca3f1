"""Which figures are drawn: at most `MOST` of a journal, the most important ones first.

A journal may hold any number of boards; a gallery may not. Boards are grouped by bagging and protocol, and the groups
ordered by their number of runs. The first, `main`, is drawn in full, by labels of validation rows and, where methods
have epochs to choose, by proportions of validation bags. Of the second group the scores are drawn, and of each further
one a single figure, of the kind that further groups have shown least. `PLAN` is the order of importance.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from llpbench.report.board_tables import names_of
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.groups import groups
from llpbench.report.plots.arms import study_arms
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.critical import critical_difference
from llpbench.report.plots.forest import differences, pretraining
from llpbench.report.plots.heat_map import heat_map
from llpbench.report.plots.learning import learning_curves
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.proportions import proportions
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import robustness
from llpbench.report.plots.time import time

MOST = 20
"""figures of a journal"""

MOST_FURTHER = 3
"""groups of boards beyond the second that have a figure"""

FURTHER = ("bag-size", "time", "heat-map")
"""what a further group has a single figure of"""

KINDS: Mapping[str, Callable[[Board, str], Iterator[Drawing]]] = {
    "time": time,
    "differences": differences,
    "bag-size": bag_size_curves,
    "heat-map": heat_map,
    "reliability": reliability,
    "robustness": robustness,
    "pretraining": pretraining,
    "learning-curves": learning_curves,
    "critical-difference": critical_difference,
}
"""of a single board, by name"""

Role = Literal["main", "main by proportions", "second"]
_Step = tuple[Role, str] | Literal["further", "proportions", "studies"]

PLAN: tuple[_Step, ...] = (
    ("main", "differences"),
    ("main", "time"),
    ("main", "bag-size"),
    ("main", "heat-map"),
    ("main", "critical-difference"),
    ("main by proportions", "time"),
    ("main by proportions", "bag-size"),
    ("main by proportions", "heat-map"),
    ("second", "time"),
    ("second", "bag-size"),
    ("second", "heat-map"),
    "further",
    "proportions",
    ("main", "reliability"),
    ("main", "robustness"),
    ("main", "pretraining"),
    ("main", "learning-curves"),
    "studies",
)
"""what is drawn, the most important first: what comes after `MOST` figures is left out"""


def gallery(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """At most `MOST` figures of a journal, the most important first, each drawn when it is asked for."""
    return itertools.islice(_every(leaderboards), MOST)


def every_kind(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Every figure that there are data for, board by board, however many: learning curves of each dataset, too."""
    for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True):
        for kind in KINDS:
            if kind != "learning-curves":
                yield from KINDS[kind](board, name)
        yield from learning_curves(board, name, every=True)
    yield from proportions(leaderboards)
    yield from study_arms(leaderboards)


def _every(leaderboards: Leaderboards) -> Iterator[Drawing]:
    names = {id(board): name for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True)}
    every = groups(leaderboards)
    chosen = _by_role(every)
    for step in PLAN:
        if step == "further":
            yield from _further([group["auc"] for group in every[2:] if "auc" in group], names)
        elif step == "proportions":
            yield from proportions(leaderboards)
        elif step == "studies":
            yield from study_arms(leaderboards)
        elif (board := chosen.get(step[0])) is not None:
            yield from KINDS[step[1]](board, names[id(board)])


def _by_role(every: Sequence[Mapping[str, Board]]) -> dict[Role, Board]:
    """Boards of methods without epochs are the same by any criterion, so they are drawn once."""
    found: dict[Role, Board] = {}
    if every and "auc" in every[0]:
        found["main"] = every[0]["auc"]
    if every and "mpiou" in every[0] and every[0]["mpiou"].protocol is not None:
        found["main by proportions"] = every[0]["mpiou"]
    if len(every) > 1 and "auc" in every[1]:
        found["second"] = every[1]["auc"]
    return found


def _further(boards: list[Board], names: Mapping[int, str]) -> Iterator[Drawing]:
    """A figure for each board, of the kind that has been shown least."""
    shown = Counter(dict.fromkeys(FURTHER, 0))
    for board in boards[:MOST_FURTHER]:
        for kind in sorted(FURTHER, key=lambda kind: shown[kind]):
            if drawing := next(KINDS[kind](board, names[id(board)]), None):
                shown[kind] += 1
                yield drawing
                break

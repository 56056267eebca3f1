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
"""plots of a single board, by name"""

SCORES = ("time", "bag-size", "heat-map")
FURTHER = ("bag-size", "time", "heat-map")
"""kinds that have a single figure in a further group"""

PLAN: Mapping[str, Sequence[str]] = {
    "main": ("differences", "time", "bag-size", "heat-map", "critical-difference"),
    "main by proportions": SCORES,
    "second": SCORES,
    "further": (),
    "proportions": (),
    "rest of main": ("reliability", "robustness", "pretraining", "learning-curves"),
    "studies": (),
}
"""kinds of plots by group of boards, the most important first; figures after `MOST` are left out"""


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
    main, second = ([*every, {}, {}])[:2]
    by_proportions = main.get("mpiou")
    if by_proportions is not None and by_proportions.protocol is None:  # methods without epochs: the same by any
        by_proportions = None
    boards = {"main by proportions": by_proportions, "second": second.get("auc")}
    boards |= dict.fromkeys(("main", "rest of main"), main.get("auc"))
    others = {
        "further": _further([group["auc"] for group in every[2:] if "auc" in group], names),
        "proportions": proportions(leaderboards),
        "studies": study_arms(leaderboards),
    }
    for part, kinds in PLAN.items():
        yield from others.get(part, ())
        if (board := boards.get(part)) is not None:
            for kind in kinds:
                yield from KINDS[kind](board, names[id(board)])


def _further(boards: list[Board], names: Mapping[int, str]) -> Iterator[Drawing]:
    """A figure for each board, of the kind that has been shown least."""
    shown = Counter(dict.fromkeys(FURTHER, 0))
    for board in boards[:MOST_FURTHER]:
        for kind in sorted(FURTHER, key=lambda kind: shown[kind]):
            if drawing := next(KINDS[kind](board, names[id(board)]), None):
                shown[kind] += 1
                yield drawing
                break

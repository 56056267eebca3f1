"""Figures of a report: at most `MOST`, the most important first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from llpbench.report.board_tables import names_of
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.forest import differences, pretraining
from llpbench.report.plots.heat_map import heat_map
from llpbench.report.plots.learning import learning_curves
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.proportions import proportions
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import robustness_bars
from llpbench.report.plots.time import time

MOST = 20
"""Largest number of figures of a report."""

KINDS: Mapping[str, Callable[[Board, str], Iterator[Drawing]]] = {
    "differences": differences,
    "time": time,
    "bag-size": bag_size_curves,
    "heat-map": heat_map,
    "reliability": reliability,
    "robustness": robustness_bars,
    "pretraining": pretraining,
    "learning-curves": learning_curves,
}
"""Figures of a board by name, with the last ones in the order in which they are drawn."""

SCORES = ("time", "bag-size", "heat-map")
"""Figures that other boards than the first have, too."""

EARLY = ("differences", *SCORES)
"""Figures of the first board that come before the proportions of bags. All others come last."""


def gallery(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Yield the figures of a report. Each is drawn when it is requested.

    The board with most runs has all figures; it comes first with those of scores. The board of the same runs by mPIoU
    and the board of the second group have figures of scores only.
    """
    return itertools.islice(_planned(leaderboards), MOST)


def _planned(leaderboards: Leaderboards) -> Iterator[Drawing]:
    names = {id(board): name for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True)}

    def drawn(board: Board | None, *kinds: str) -> Iterator[Drawing]:
        if board is not None:
            for kind in kinds:
                yield from KINDS[kind](board, names[id(board)])

    nothing: dict[str, Board] = {}
    first, second, *_ = [*leaderboards.groups(), nothing, nothing]
    by_proportions = first.get("mpiou")
    yield from drawn(first.get("auc"), "differences", *SCORES)
    if by_proportions is not None and by_proportions.protocol is not None:  # without epochs all criteria are the same
        yield from drawn(by_proportions, *SCORES)
    yield from drawn(second.get("auc"), *SCORES)
    yield from proportions(leaderboards)
    yield from drawn(first.get("auc"), *(kind for kind in KINDS if kind not in EARLY))


def every_kind(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Yield every figure of every board, with learning curves of each dataset."""
    for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True):
        for kind, draw in KINDS.items():
            if kind != "learning-curves":
                yield from draw(board, name)
        yield from learning_curves(board, name, every=True)
    yield from proportions(leaderboards)

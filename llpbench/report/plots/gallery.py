"""Figures of a report, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from llpbench.report.board_tables import names_of
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.plots.curves import bag_size_curves, reliability
from llpbench.report.plots.forest import differences, pretraining, robustness_bars
from llpbench.report.plots.layout import Drawing
from llpbench.report.plots.proportions import proportions
from llpbench.report.plots.time import time

KINDS: Mapping[str, Callable[[Board, str], Iterator[Drawing]]] = {
    "differences": differences,
    "robustness": robustness_bars,
    "time": time,
    "bag-size": bag_size_curves,
    "reliability": reliability,
    "pretraining": pretraining,
}
"""Figures of a board by name."""


def gallery(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Yield the figures of a report: all of the first board, the differences of the second bagging, the proportions.

    Each is drawn when it is requested.
    """
    names = {id(board): name for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True)}
    first, *others = [*leaderboards.headline_boards(), None]
    for kind, draw in KINDS.items():
        if first is not None:
            yield from draw(first, names[id(first)])
        if kind == "differences" and (second := next(iter(others), None)) is not None:
            yield from draw(second, names[id(second)])
    yield from proportions(leaderboards)

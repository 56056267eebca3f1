"""Robustness ranking as bars, least spread first."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from llpbench.core.text import plural
from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.robustness_ranking import ANCHOR, robustness

MOST_ENTRIES = 20

WIDTH = 4.2
"""Width in inches: texts are readable on a phone."""

COLOUR = "#0072b2"


def robustness_bars(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the mean rank of the standard deviation over seeds of each entry, with the deviation beside it."""
    ranking = robustness(board)
    drawn = ranking.head(MOST_ENTRIES)
    if drawn.empty:
        return
    names = layout.labels(board, ranking.index, longest=26)
    figure = Figure(figsize=(WIDTH, 0.7 + 0.21 * len(drawn)))
    ax = figure.subplots()
    bars = ax.barh([names[entry] for entry in drawn.index], drawn["mean_rank"], color=COLOUR, height=0.7)
    ax.bar_label(bars, [f"± {std:.1f}" for std in drawn["std"]], padding=3)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, 1.18 * drawn["mean_rank"].max())
    ax.set_xlabel("mean rank of the standard deviation")
    yield layout.of_board(
        board,
        name,
        ANCHOR,
        figure,
        least=names[ranking.index[0]],
        most=names[ranking.index[-1]],
        tasks=plural(int(drawn["tasks"].max()), "task"),
        hidden=len(ranking) - len(drawn),
    )

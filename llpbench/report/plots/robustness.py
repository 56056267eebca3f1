"""Spread of results over seeds, by method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import row_styles

MOST_ROWS = 20


def robustness(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the standard deviation over seeds of each row, pooled over columns, and its number of failed runs."""
    rows = [row for row in board.ranked or board.learners if board.rows[row].is_plain]
    values = board.values()[rows].groupby(level=0)
    freedom = (values.count() - 1).clip(lower=0)
    stds = np.sqrt((values.var() * freedom).sum() / freedom.sum().where(freedom.sum() > 0)).dropna()
    drawn = [row for row in rows if row in stds.index][:MOST_ROWS]
    if not drawn:
        return
    styles, names = row_styles(board, drawn), layout.labels(board)
    figure, ax = layout.named_lines([names[row] for row in drawn])
    for place, row in enumerate(drawn):
        ax.plot([0, stds[row]], [place, place], color=styles[row].colour, linewidth=1.6)
        ax.plot([stds[row]], [place], **styles[row].points())
        failed = sum(len(score.failures) for score in board.rows[row].scores)
        text = f"{stds[row]:.1f}" + (f"  ({failed} failed)" if failed else "")
        ax.annotate(text, (stds[row], place), (8, 0), textcoords="offset points", va="center")
    ax.set_xlim(0, 1.15 * max(stds[drawn].max(), 0.1))
    ax.set_xlabel(f"standard deviation of {layout.metric_text(board)} over seeds")
    least, most = ((names[row], stds[row]) for row in (stds[drawn].idxmin(), stds[drawn].idxmax()))
    yield layout.of_board(board, name, "robustness", figure, least=least, most=most)

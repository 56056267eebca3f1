"""Spread of results over seeds, by method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import entry_styles

MOST_ENTRIES = 20


def robustness(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the standard deviation over seeds of each entry, pooled over tasks, and its number of failed runs."""
    entries = [entry for entry in board.ranked or board.learners if board.entries.at[entry, "is_plain"]]
    values = board.values()[entries].groupby(level=0)
    freedom = (values.count() - 1).clip(lower=0)
    stds = np.sqrt((values.var() * freedom).sum() / freedom.sum().where(freedom.sum() > 0)).dropna()
    drawn = [entry for entry in entries if entry in stds.index][:MOST_ENTRIES]
    if not drawn:
        return
    styles, names = entry_styles(board, drawn), layout.labels(board)
    figure, ax = layout.named_lines([names[entry] for entry in drawn])
    for place, entry in enumerate(drawn):
        ax.plot([0, stds[entry]], [place, place], color=styles[entry].colour, linewidth=1.6)
        ax.plot([stds[entry]], [place], **styles[entry].points())
        failed = board.scores["failed"][entry].sum()
        text = f"{stds[entry]:.1f}" + (f"  ({failed} failed)" if failed else "")
        ax.annotate(text, (stds[entry], place), (8, 0), textcoords="offset points", va="center")
    ax.set_xlim(0, 1.15 * max(stds[drawn].max(), 0.1))
    ax.set_xlabel(f"standard deviation of {layout.metric_text(board)} over seeds")
    least, most = ((names[entry], stds[entry]) for entry in (stds[drawn].idxmin(), stds[drawn].idxmax()))
    yield layout.of_board(board, name, "robustness", figure, least=least, most=most)

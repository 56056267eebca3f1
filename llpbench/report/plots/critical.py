"""Critical difference of mean ranks (Demšar 2006), with a line for each method."""

from __future__ import annotations

from collections.abc import Iterator

from llpbench.report import statistics
from llpbench.report.boards import Board
from llpbench.report.leaderboard import blocks
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing

FEWEST_DATASETS = 10
"""With fewer datasets, the critical difference is most of the axis."""


def critical_difference(board: Board, name: str) -> Iterator[Drawing]:
    """Draw mean ranks over datasets, and the critical difference from the best one."""
    if len(board.ranked) < 3 or len(board.datasets) < FEWEST_DATASETS:
        return
    means = blocks(board, board.ranked)
    ranks = means.rank(axis="columns", ascending=False).mean().sort_values(kind="stable")
    width = statistics.critical_difference(len(ranks), len(means))
    end = ranks.iat[0] + width
    names = layout.labels(board)
    figure, ax = layout.named_lines([names[entry] for entry in ranks.index])
    ax.axvspan(ranks.iat[0], end, color="0.92", zorder=0)
    for place, rank in enumerate(ranks):
        ax.plot([rank], [place], "o", color="0.55" if rank <= end else "#1c5490", markersize=6)
        ax.annotate(f"{rank:.1f}", (rank, place), (8, 0), textcoords="offset points", va="center")
    ax.set_xlim(0.5, len(ranks) + 0.5)
    ax.set_xlabel(f"mean rank over {len(means)} datasets by test {board.metric.title} (1: best)")
    yield layout.of_board(
        board,
        name,
        "critical-difference",
        figure,
        first=names[ranks.index[0]],
        worse=int((ranks > end).sum()),
        others=len(ranks) - 1,
        width=width,
        p=statistics.friedman_p(means),
    )

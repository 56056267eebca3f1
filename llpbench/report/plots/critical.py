"""Which differences between methods are more than chance: mean ranks and critical difference, after Demšar (2006).

His diagram lets names cross and dots hide one another where ranks are equal. Here each row has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.report import statistics
from llpbench.report.boards import Board
from llpbench.report.leaderboard import ranked_dataset_means
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import WIDTH

FEWEST_DATASETS = 10
"""with fewer, the critical difference is most of the axis"""


def critical_difference(board: Board, name: str) -> Iterator[Drawing]:
    """Mean ranks over the datasets of the leaderboard, from each the critical difference to the right."""
    means = ranked_dataset_means(board) if board.ranked else DataFrame()
    friedman = statistics.friedman(means)
    if friedman is None or friedman.datasets < FEWEST_DATASETS:
        return
    ranks = friedman.mean_ranks.sort_values(kind="stable")
    names = layout.labels(board)
    bar = ranks.iat[0] + friedman.critical_difference
    figure = Figure(figsize=(WIDTH, 0.6 + 0.2 * len(ranks)))
    ax = figure.subplots()
    ax.axvspan(ranks.iat[0], bar, color="0.92", zorder=0)
    for place, rank in enumerate(ranks):
        ax.plot([rank], [place], "o", color="0.55" if rank <= bar else "#1c5490", markersize=6)
        ax.annotate(f"{rank:.1f}", (rank, place), (8, 0), textcoords="offset points", va="center")
    layout.name_lines(ax, [names[row] for row in ranks.index])
    ax.set_xlim(0.5, len(ranks) + 0.5)
    ax.set_xlabel(f"mean rank over {friedman.datasets} datasets by test {board.metric.title} (1: best)")
    facts = {"first": names[ranks.index[0]], "worse": int((ranks > bar).sum()), "of": len(ranks) - 1}
    yield layout.of_board(board, name, "critical-difference", figure, friedman=friedman, **facts)

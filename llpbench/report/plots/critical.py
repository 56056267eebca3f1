"""Which differences between methods are more than chance: mean ranks and critical difference, after Demšar (2006).

His diagram lets names cross and dots hide one another where ranks are equal. Here each row has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import ranked_dataset_means
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles

ALPHA = 0.05

_BAR = "0.25"


def critical_difference(board: Board, name: str) -> Iterator[Drawing]:
    """Mean ranks over the datasets of the leaderboard, rows that Nemenyi's test does not separate joined by a bar."""
    means = ranked_dataset_means(board) if board.ranked else DataFrame()
    friedman, p_values = statistics.friedman(means), statistics.nemenyi(means)
    if friedman is None or p_values is None:
        return
    rows = {place: board.rows[place] for place in board.ranked}
    order = sorted(rows, key=lambda place: (float(friedman.mean_ranks[place]), rows[place].contender.label))
    styles, names = row_styles(rows.values()), layout.labels(board.rows)
    figure = Figure(figsize=(WIDTH, 1.15 + 0.2 * len(order)))
    ax = figure.subplots()
    for place, row in enumerate(order):
        style, rank = styles[rows[row].contender], float(friedman.mean_ranks[row])
        ax.plot([1, rank], [place, place], color="0.88", linewidth=0.8, zorder=1)
        ax.plot([rank], [place], zorder=3, **{**style.points(), "markersize": 6})
        ax.annotate(f"{rank:.1f}", (rank, place), (7, 0), textcoords="offset points", va="center")
    layout.name_lines(ax, [names[rows[row].contender].strip() for row in order])
    _bars(ax, _joined(order, p_values), len(order), friedman.critical_difference)
    ax.set_xlabel(f"mean rank over datasets by test {board.metric.title} (1: best)")
    about = layout.about(
        board,
        "critical-difference",
        name,
        "Mean ranks and critical difference",
        words.caption("plot_critical", board, rows=len(order), friedman=friedman),
        words.datasets_text(friedman.datasets),
    )
    yield Drawing(about, figure)


def _joined(order: Sequence[int], p_values: DataFrame) -> list[tuple[int, int]]:
    """First and last place of each longest series of rows that do not differ, none inside another."""
    found: list[tuple[int, int]] = []
    for first, row in enumerate(order):
        last = max(place for place in range(first, len(order)) if p_values.loc[row, order[place]] >= ALPHA)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def _bars(ax: Axes, joined: Sequence[tuple[int, int]], number: int, critical: float) -> None:
    """Series of rows on the right, the critical difference above, whole ranks on the axis."""
    end = max(number, 1 + critical) + 0.05 * number
    step = 0.03 * number
    for place, (first, last) in enumerate(joined):
        x = end + (1.5 + place) * step
        ax.plot([x, x], [first - 0.25, last + 0.25], color=_BAR, linewidth=2.4, solid_capstyle="round")
    ax.plot([1, 1 + critical], [-1.15, -1.15], color=_BAR, linewidth=1, marker="|", markersize=7)
    label = f"critical difference {critical:.1f}"
    ax.annotate(label, (1 + critical, -1.15), (7, 0), textcoords="offset points", va="center")
    ax.set_ylim(number - 0.4, -1.8)
    ax.set_xlim(0.6, end + (1.5 + len(joined)) * step)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    ax.set_xticks([tick for tick in ax.get_xticks() if 1 <= tick <= number])

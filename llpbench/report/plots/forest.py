"""Differences between two rows, one line each: the leader against every other method, and pretraining against none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import Series

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import blocks
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles

MOST_ROWS = 24

FEWEST = 3
"""values of an interval: a t interval of two is nine times their standard deviation"""


def differences(board: Board, name: str) -> Iterator[Drawing]:
    """The first row against each other ranked row: means over datasets with their intervals, more is better."""
    if len(board.ranked) < 2:
        return
    leader, *others = board.ranked[: MOST_ROWS + 1]
    found = blocks(board, board.ranked)
    values = [[*(found[leader] - found[row])] for row in others]
    names = layout.labels(board.rows)
    first = names[board.rows[leader].contender].strip()
    over = _over(len(board.datasets))
    unit = "points" if board.metric.percent else "units"
    figure = _forest(board, others, values, f"{unit} of {board.metric.title} by which {first} is ahead", over)
    about = layout.about(
        board,
        "differences",
        name,
        f"How far {first} leads",
        words.caption("plot_differences", board, first=first, over=over),
        words.datasets_text(len(board.datasets)),
        layout.left_out(len(board.ranked) - 1 - len(others), "ranked method"),
    )
    yield Drawing(about, figure)


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """Each row with pretraining minus the same row without, where both have run."""
    plain = {row.contender: n for n, row in enumerate(board.rows) if row.contender.pretraining == "none"}
    pairs = [(n, plain.get(row.contender._replace(pretraining="none"))) for n, row in enumerate(board.rows)]
    several = len({column.dataset for column in board.columns}) > 1
    values = board.sign * board.values()
    found = {
        one: gains
        for one, other in pairs
        if other not in (None, one) and (gains := _gains(board, values[one] - values[other], several=several))
    }
    drawn = [*found][:MOST_ROWS]
    if not drawn:
        return
    over = _over(2 if several else 1)
    figure = _forest(board, drawn, [found[row] for row in drawn], "points that pretraining adds", over)
    about = layout.about(
        board,
        "pretraining",
        name,
        "With pretraining minus without",
        words.caption("plot_pretraining", board, over=over, fewest=FEWEST),
        layout.left_out(len(found) - len(drawn), "further row"),
    )
    yield Drawing(about, figure)


def _over(datasets: int) -> str:
    """What the values of a line are, which are taken to be independent."""
    return "datasets" if datasets > 1 else "seeds"


def _gains(board: Board, differences: Series, *, several: bool) -> list[float]:
    """Means by dataset of the runs that both have, with `several` of them; else by seed."""
    known = differences.dropna()
    columns, seeds = (known.index.get_level_values(level) for level in (0, 1))
    return [
        *known.groupby(
            [board.columns[column].dataset for column in columns] if several else [*seeds], sort=False
        ).mean()
    ]


def _forest(board: Board, rows: Sequence[int], values: Sequence[Sequence[float]], label: str, over: str) -> Figure:
    """A line for each row: its values as pale dots, their mean, its interval, and both as numbers on the right."""
    shown = [board.rows[row] for row in rows]
    names, styles = layout.labels(board.rows), row_styles(shown)
    figure = Figure(figsize=(WIDTH, 1.0 + 0.21 * len(rows)))
    ax = figure.subplots()
    for place, (own, row) in enumerate(zip(values, shown, strict=True)):
        colour, mean = styles[row.contender].colour, fsum(own) / len(own)
        ends = statistics.interval(own) if len(own) >= FEWEST else None
        if ends is not None:
            ax.plot(ends, [place, place], color=colour, linewidth=1.4, zorder=2)
        ax.plot(own, [place] * len(own), "o", color=colour, markersize=3, markeredgewidth=0, alpha=0.45, zorder=3)
        ax.plot([mean], [place], "D", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        told = words.interval_text(mean, ends, sign="+").replace("-", "−")
        ax.text(1.01, place, told, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.5", linewidth=0.8, zorder=1)
    layout.name_lines(ax, [names[row.contender] for row in shown])
    ax.xaxis.grid(visible=True)
    ax.set_xlabel(label)
    keys = [
        Line2D([], [], linestyle="none", marker="D", color="0.3", label=f"mean over {over}"),
        Line2D([], [], color="0.3", label=f"its {words.LEVEL} interval"),
        Line2D([], [], linestyle="none", marker="o", markersize=3, color="0.6", label=f"one of the {over}"),
    ]
    layout.legend_below(figure, keys, keys=1.6)
    return figure

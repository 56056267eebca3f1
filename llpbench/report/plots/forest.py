"""Differences between two rows, one line each: the leader against every other method, and pretraining against none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from statistics import median

from matplotlib.figure import Figure
from pandas import Series

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import blocks
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import WIDTH

MOST_ROWS = 20

FEWEST = 3
"""values of an interval: a t interval of two is nine times their standard deviation"""

CLEAR, OPEN = "#1c5490", "0.55"
"""colours of intervals that exclude 0, and that include it"""

Ends = tuple[float, float] | None


def differences(board: Board, name: str) -> Iterator[Drawing]:
    """The first row against each other ranked row: means over datasets with their intervals, more is better."""
    if len(board.ranked) < 2:
        return
    leader, *others = board.ranked[: MOST_ROWS + 1]
    found = blocks(board, board.ranked)
    lines = {row: _line([*(found[leader] - found[row])]) for row in others}
    first = layout.labels(board)[leader]
    unit = "points" if board.metric.percent else "units"
    figure = _forest(board, lines, f"{unit} of {board.metric.title} by which {first.strip()} is ahead")
    facts = {"first": first, "number": len(others), "clear": _clear(lines), "over": _over(len(board.datasets))}
    yield layout.of_board(board, name, "differences", figure, **facts)


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """Each row with pretraining minus the same row without, where both have run."""
    plain = {row.contender: n for n, row in enumerate(board.rows) if row.contender.pretraining == "none"}
    pairs = [(n, plain.get(row.contender._replace(pretraining="none"))) for n, row in enumerate(board.rows)]
    datasets = len({column.dataset for column in board.columns})
    values = board.sign * board.values()
    lines = {
        one: _line(gains)
        for one, other in pairs
        if other not in (None, one) and (gains := _gains(board, values[one] - values[other], datasets > 1))
    }
    lines = dict([*lines.items()][:MOST_ROWS])
    if not lines:
        return
    figure = _forest(board, lines, "points that pretraining adds")
    middle = median(mean for mean, _ in lines.values())
    facts = {"number": len(lines), "clear": _clear(lines), "middle": middle, "over": _over(datasets)}
    yield layout.of_board(board, name, "pretraining", figure, **facts)


def _over(datasets: int) -> str:
    """Kind of values of a line, which are treated as independent."""
    return "datasets" if datasets > 1 else "seeds"


def _gains(board: Board, differences: Series, several: bool) -> list[float]:
    """Means by dataset of the runs that both have, with `several` of them; else by seed."""
    known = differences.dropna()
    columns, seeds = (known.index.get_level_values(level) for level in (0, 1))
    keys = [board.columns[column].dataset for column in columns] if several else [*seeds]
    return [*known.groupby(keys, sort=False).mean()]


def _line(values: Sequence[float]) -> tuple[float, Ends]:
    """Mean and interval."""
    return fsum(values) / len(values), statistics.interval(values) if len(values) >= FEWEST else None


def _is_clear(ends: Ends) -> bool:
    return ends is not None and (ends[0] > 0 or ends[1] < 0)


def _clear(lines: Mapping[int, tuple[float, Ends]]) -> int:
    return sum(_is_clear(ends) for _, ends in lines.values())


def _forest(board: Board, lines: Mapping[int, tuple[float, Ends]], label: str) -> Figure:
    """A line for each row: the mean, its interval, and both as numbers on the right."""
    names = layout.labels(board)
    figure = Figure(figsize=(WIDTH, 0.6 + 0.21 * len(lines)))
    ax = figure.subplots()
    for place, (mean, ends) in enumerate(lines.values()):
        colour = CLEAR if _is_clear(ends) else OPEN
        if ends is not None:
            ax.plot(ends, [place, place], color=colour, linewidth=1.6, zorder=2)
        ax.plot([mean], [place], "o", color=colour, markersize=5.5, zorder=3)
        told = words.interval_text(mean, ends, sign="+").replace("-", "−")
        ax.text(1.01, place, told, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.3", linewidth=0.8, zorder=1)
    layout.name_lines(ax, [names[row] for row in lines])
    ax.set_xlabel(label)
    return figure

"""Whether a method gives the same twice: every run against the mean of its seeds, and the runs that failed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles

MOST_ROWS = 40

_FAILED = "#b3261e"


def robustness(board: Board, name: str) -> Iterator[Drawing]:
    """Every run minus the mean of its column's seeds, row by row; nothing where no column has several seeds."""
    methods = [row for row in layout.plain_rows(board) if row.contender.role != "ceiling" and not row.contender.tuned]
    found = [(row, _deviations(row), sum(len(score.failures) for score in row.scores)) for row in methods]
    rows = [each for each in found if each[1][0] or each[2]][:MOST_ROWS]
    if not any(deviations for _, (deviations, _), _ in rows):
        return
    styles, names = row_styles(row for row, _, _ in rows), layout.labels(board.rows)
    figure = Figure(figsize=(WIDTH, 0.95 + 0.25 * len(rows)))
    ax = figure.subplots()
    edge = 1.04 * max(abs(value) for _, (deviations, _), _ in rows for value in deviations) or 1.0
    for place, (row, (deviations, free), failures) in enumerate(rows):
        colour = styles[row.contender].colour
        std = math.sqrt(math.fsum(value**2 for value in deviations) / max(free, 1))
        ax.plot([-std, std], [place, place], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt", zorder=1)
        heights = [place + 0.28 * _aside(number) for number in range(len(deviations))]
        ax.plot(deviations, heights, linestyle="none", marker="o", color=colour, markersize=2.4, markeredgewidth=0)
        told = f"{std:.1f}" if deviations else words.NOTHING
        ax.text(1.01, place, told, transform=ax.get_yaxis_transform(), va="center")
        if failures:
            ax.text(1.07, place, f"× {failures}", transform=ax.get_yaxis_transform(), va="center", color=_FAILED)
    ax.text(1.01, -1, "spread", transform=ax.get_yaxis_transform(), va="center", color="0.4")
    ax.axvline(0, color="0.75", linewidth=0.6, zorder=0)
    ax.set_yticks(range(len(rows)), [names[row.contender] for row, _, _ in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.3, -1.4)
    ax.set_xlim(-edge, edge)
    ax.xaxis.grid(visible=True)
    ax.set_xlabel("test AUC × 100 of a run, minus the mean of the seeds of its column")
    keys = [
        Line2D([], [], linestyle="none", marker="o", markersize=3.5, color="0.3", label="a run"),
        Line2D([], [], color="0.75", linewidth=5, label="± standard deviation"),
        Line2D([], [], linestyle="none", marker="x", color=_FAILED, label="runs that failed"),
    ]
    layout.legend_below(figure, keys, keys=1.4)
    left = len(methods) - len(rows)
    about = About(
        kind="robustness",
        name=f"robustness-{name}",
        title="Spread over seeds",
        caption=layout.sentences(
            "Each dot is a run: its test AUC minus the mean of the seeds of its column, in points; on the right the "
            "standard deviation over seeds, pooled over columns, and how many runs failed. In the order of the "
            "leaderboard: a method can be robust and "
            "bad. Columns with a single seed are left out.",
            f"{plural(left, 'row')} without several seeds left out." if left else "",
            layout.plain_note(board),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def _deviations(row: Row) -> tuple[list[float], int]:
    """Of every run from the mean of its column, where that has several, and by how many they are free."""
    columns = [[*score.values.get(HEADLINE, {}).values()] for score in row.scores]
    several = [values for values in columns if len(values) > 1]
    found = [value - math.fsum(values) / len(values) for values in several for value in values]
    return found, len(found) - len(several)


def _aside(number: int) -> float:
    """Between -1 and 1, spread evenly for any series of numbers: the golden ratio's multiples."""
    return 2 * (number * 0.6180339887 % 1) - 1

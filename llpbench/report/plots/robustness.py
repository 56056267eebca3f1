"""Whether a method gives the same twice: every run against the mean of its seeds, and the runs that failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles

MOST_ROWS = 40

MOST_DOTS = 120
"""of a row; of more runs the outline of their density is drawn"""

LINEAR = 2.0
"""points around 0 where the axis is as good as linear; a single run far out would press all others into a line"""

_ROOM = 0.15
"""of half the axis that a tick's label takes"""

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
    edge = 1.2 * max(abs(value) for _, (deviations, _), _ in rows for value in deviations) or 1.0
    ax.set_xscale("asinh", linear_width=LINEAR)
    dense = _draw_runs(
        ax, [deviations for _, (deviations, _), _ in rows], [styles[row.contender].colour for row, _, _ in rows]
    )
    for place, (row, (deviations, free), failures) in enumerate(rows):
        colour = styles[row.contender].colour
        std = math.sqrt(math.fsum(value**2 for value in deviations) / max(free, 1))
        ax.plot([-std, std], [place, place], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt", zorder=1)
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
    ticks = _ticks(edge)
    ax.set_xticks(ticks, [f"{tick:+g}".replace("-", "−") if tick else "0" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.xaxis.grid(visible=True)
    ax.set_xlabel(f"{layout.metric_text(board)} of a run, minus the mean of the seeds of its column")
    keys = [
        Line2D([], [], color="0.45", linewidth=9, alpha=0.45, label="density of runs")
        if dense
        else Line2D([], [], linestyle="none", marker="o", markersize=3.5, color="0.3", label="a run"),
        Line2D([], [], color="0.75", linewidth=5, label="± standard deviation"),
    ]
    if any_failed := any(failures for _, _, failures in rows):
        keys.append(Line2D([], [], linestyle="none", marker="x", color=_FAILED, label="runs that failed"))
    layout.legend_below(figure, keys, keys=1.4)
    left = len(methods) - len(rows)
    about = layout.about(
        board,
        "robustness",
        name,
        "Spread over seeds",
        words.caption("plot_robustness", board, dots=MOST_DOTS, linear=f"{LINEAR:g}", failed=any_failed),
        f"{plural(left, 'row')} without several seeds left out." if left else "",
        layout.plain_note(board),
    )
    yield Drawing(about, figure)


def _deviations(row: Row) -> tuple[list[float], int]:
    """Of every run from the mean of its column, where that has several, and by how many they are free."""
    columns = [[*score.values.values()] for score in row.scores]
    several = [values for values in columns if len(values) > 1]
    found = [value - math.fsum(values) / len(values) for values in several for value in values]
    return found, len(found) - len(several)


def _draw_runs(ax: Axes, rows: Sequence[Sequence[float]], colours: Sequence[str]) -> bool:
    """Every row's runs, the first row on top: dots side by side where they would hide one another; where there are too
    many of them their density, and True."""
    frame = DataFrame([(place, value) for place, values in enumerate(rows) for value in values], columns=["row", "x"])
    how: dict[str, Any] = {"x": "x", "y": "row", "hue": "row", "palette": dict(enumerate(colours)), "orient": "h"}
    how |= {"native_scale": True, "legend": False, "linewidth": 0, "ax": ax}
    dense = max(map(len, rows)) > MOST_DOTS
    if dense:
        seaborn.violinplot(frame, inner=None, cut=0, density_norm="width", width=0.9, saturation=1, alpha=0.45, **how)
    else:
        seaborn.swarmplot(frame, size=2.6, warn_thresh=1, **how)
    ax.set_ylabel("")
    return dense


def _ticks(edge: float) -> list[float]:
    """0, and round numbers on either side as far as `edge`, where the axis has room for them."""
    rounds = [digit * 10.0**power for power in range(-3, 3) for digit in (1, 2, 5)]
    inside: list[float] = []
    for each in [each for each in rounds if each <= edge][-4:]:
        if math.asinh(each / LINEAR) - math.asinh((inside or [0.0])[-1] / LINEAR) >= _ROOM * math.asinh(edge / LINEAR):
            inside.append(each)
    return [*(-each for each in reversed(inside)), 0.0, *inside]

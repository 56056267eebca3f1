"""Whether probabilities mean what they say: what was predicted against how often it came true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import GREY

MOST_ROWS = 12
"""a panel each"""

FEWEST = 50
"""rows in a bin, over all seeds: the share of fewer is mostly chance"""

_SHADES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6239")
"""of datasets: Okabe & Ito's, distinct for colour-blind readers"""


def reliability(board: Board, name: str) -> Iterator[Drawing]:
    """A panel for each row, a line for each dataset, seeds and bag sizes pooled; nothing where no run tells."""
    datasets = list(dict.fromkeys(column.dataset for column in board.columns))[: len(_SHADES)]
    methods = [row for row in layout.plain_rows(board) if row.contender.role != "ceiling"]
    found = {row.contender: _curves(board, row, datasets) for row in methods}
    rows = [row for row in methods if any(found[row.contender])]
    if not rows:
        return
    drawn = rows[:MOST_ROWS]
    across = layout.balanced(len(drawn), 4)
    told = {each for row in drawn for each, curve in zip(datasets, found[row.contender], strict=True) if curve}
    keys = [
        Line2D([], [], color=shade, label=layout.shown(each))
        for each, shade in zip(datasets, _SHADES, strict=False)
        if each in told
    ]
    silent = [each for each in datasets if each not in told]
    figure, panels = layout.panels(
        len(drawn), across=across, height=1.75, below=layout.legend_height(keys) + 0.2, share_y=True
    )
    names = layout.labels(board.rows)
    for ax, row in zip(panels, drawn, strict=True):
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        for curve, shade in zip(found[row.contender], _SHADES, strict=False):
            _draw(ax, curve, shade)
        ax.set_title(names[row.contender])
        ax.set(
            xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1]
        )  # nearly square: layouts of equal aspect let titles meet ticks
    for ax in panels[::across]:
        ax.set_ylabel("came true")
    layout.label_below(panels, across, "predicted")
    layout.legend_below(figure, keys)
    left_out = [
        f"Not drawn, since these runs have not recorded it: {', '.join(silent)}." if silent else "",
        f"{plural(len(rows) - len(drawn), 'further row')} left out." if len(rows) > len(drawn) else "",
        layout.plain_note(board),
    ]
    about = layout.about(
        board,
        "reliability",
        name,
        "Reliability of probabilities",
        words.caption("plot_reliability", fewest=FEWEST),
        *left_out,
    )
    yield Drawing(about, figure)


def _curves(board: Board, row: Row, datasets: Sequence[str]) -> list[list[tuple[float, float]]]:
    """By dataset: mean probability and share of each bin, in ascending order."""
    return [
        _pooled(
            [
                result["reliability"]
                for column, score in zip(board.columns, row.scores, strict=True)
                if column.dataset == dataset
                for run in score.runs.values()
                if (result := run["results"].get(board.criterion.name)) and "reliability" in result
            ]
        )
        for dataset in datasets
    ]


def _pooled(runs: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
    """Bins of several runs together, those of enough rows."""
    sums: dict[int, list[float]] = {}
    for run in runs:
        for rows, predicted, true in run:
            place = sums.setdefault(min(int(predicted * 10), 9), [0.0, 0.0, 0.0])
            for part, value in enumerate((rows, rows * predicted, rows * true)):
                place[part] += value
    return [(p / n, t / n) for _, (n, p, t) in sorted(sums.items()) if n >= FEWEST]


def _draw(ax: Axes, curve: Sequence[tuple[float, float]], shade: str) -> None:
    if curve:
        ax.plot(*zip(*curve, strict=True), color=shade, marker="o", markersize=2.5, linewidth=1.1, clip_on=False)

"""What pretraining does: runs with it minus those of the same seeds without, dataset by dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from llpbench.report.boards import HEADLINE, Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import Style, row_styles
from llpbench.report.statistics import interval

MOST_ROWS = 24

MOST_PANELS = 12

Pair = tuple[Row, Row]
"""with and without pretraining"""


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """A panel for each dataset, a line for each method that has run both with and without pretraining."""
    pairs = _pairs(board)[:MOST_ROWS]
    every = {column.dataset: _of_dataset(board, pairs, column.dataset) for column in board.columns}
    panels = {dataset: found for dataset, found in every.items() if any(found)}
    drawn = [*panels][:MOST_PANELS]
    if not drawn:
        return
    names = layout.labels(one for one, _ in pairs)
    styles = row_styles(one for one, _ in pairs)
    across = layout.balanced(len(drawn), 4)
    figure, axes = layout.panels(len(drawn), across=across, height=0.5 + 0.2 * len(pairs), below=0.3, share_y=True)
    for ax, dataset in zip(axes, drawn, strict=True):
        for place, ((one, _), values) in enumerate(zip(pairs, panels[dataset], strict=True)):
            _line(ax, place, values, styles[one.contender])
        ax.axvline(0, color="0.5", linewidth=0.8, zorder=1)
        ax.set_title(layout.shown(dataset, 20))
        ax.xaxis.grid(visible=True)
        ax.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(pairs)), [names[one.contender] for one, _ in pairs])
    axes[0].set_ylim(len(pairs) - 0.4, -0.6)
    layout.label_below(axes, across, "points of AUC")
    yield Drawing(
        About(
            kind="pretraining",
            name=f"pretraining-{name}",
            title="With pretraining minus without",
            caption=layout.sentences(
                "Test AUC with pretraining minus that of the same method, split, bags and seed without, in "
                "points: each "
                "seed a dot, means over the bag sizes that both have; the bar their mean with its 95 % t "
                "interval. To the "
                "right of the line pretraining helps.",
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
        ),
        figure,
    )


def _pairs(board: Board) -> list[Pair]:
    """Rows with pretraining, each with the row that differs from it in that alone."""
    plain = {
        row.contender._replace(pretraining="none"): row for row in board.rows if row.contender.pretraining == "none"
    }
    return [
        (row, plain[without])
        for row in board.rows
        if row.contender.pretraining != "none" and (without := row.contender._replace(pretraining="none")) in plain
    ]


def _of_dataset(board: Board, pairs: Sequence[Pair], dataset: str) -> list[list[float]]:
    """Of each pair, the differences of the seeds that both have, means over columns."""
    places = [place for place, column in enumerate(board.columns) if column.dataset == dataset]
    return [_differences(one, other, places) for one, other in pairs]


def _differences(one: Row, other: Row, places: Sequence[int]) -> list[float]:
    found: dict[int, list[float]] = {}
    for place in places:
        ours, theirs = (_values(row, place) for row in (one, other))
        for seed in ours.keys() & theirs.keys():
            found.setdefault(seed, []).append(ours[seed] - theirs[seed])
    return [math.fsum(values) / len(values) for _, values in sorted(found.items())]


def _values(row: Row, place: int) -> Mapping[int, float]:
    return row.scores[place].values.get(HEADLINE, {})


def _line(ax: Axes, place: int, values: Sequence[float], style: Style) -> None:
    if not values:
        return
    if len(values) > 1:
        ax.plot(interval(values), [place, place], color=style.colour, linewidth=1.2, zorder=2)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3, "markeredgewidth": 0, "alpha": 0.55}
    ax.plot(values, [place] * len(values), color=style.colour, zorder=3, **dots)
    ax.plot([math.fsum(values) / len(values)], [place], color=style.colour, marker="|", markersize=9, zorder=4)

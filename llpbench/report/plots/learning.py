"""Learning curves: the criteria on validation data by epoch, and the epochs that they choose."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import fmean, median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from llpbench.core.record import Record
from llpbench.core.text import slug
from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing

PREFERRED_SIZE = 256
"""Bag size that is drawn if there are several."""

MOST_PANELS = 6

MOST_POINTS = 60
"""Points of a curve."""


class Look(NamedTuple):
    """Look of a criterion's curve."""

    label: str
    colour: str
    marker: str


LOOKS: Mapping[str, Look] = {
    "auc": Look("AUC of validation rows", "#000000", "o"),
    "mpiou": Look("mPIoU of validation bags", "#0072b2", "s"),
}


def learning_curves(board: Board, name: str, *, every: bool = False) -> Iterator[Drawing]:
    """Draw a panel for each method at one bag size, for the easiest and the hardest dataset or `every` dataset."""
    places: dict[str, int] = {}
    for place in sorted(range(len(board.columns)), key=lambda n: board.columns[n].bag_size != PREFERRED_SIZE):
        if _runs_with_curves(board, place):
            places.setdefault(board.columns[place].dataset, place)
    by_ease = sorted(places, key=lambda dataset: (-_mean(board, places[dataset]), dataset))
    for dataset in sorted(places) if every else dict.fromkeys([*by_ease[:1], *by_ease[-1:]]):
        yield _figure(board, places[dataset], name)


def _mean(board: Board, place: int) -> float:
    """Return the mean score of the ranked rows in a column."""
    means = [summary.mean for row in board.ranked if (summary := board.rows[row].scores[place].headline)]
    return board.sign * fmean(means) if means else 0.0


def _runs_with_curves(board: Board, place: int) -> dict[int, Record]:
    """Return the first run with curves of each row without pretraining."""
    first = {}
    for n, row in enumerate(board.rows):
        runs = [run for _, run in sorted(row.scores[place].runs.items()) if any(run["curves"].values())]
        if runs and row.contender.pretraining == "none" and not row.contender.tuned:
            first[n] = runs[0]
    return first


def _figure(board: Board, place: int, name: str) -> Drawing:
    column, runs = board.columns[place], _runs_with_curves(board, place)
    rows = layout.prominent(board, runs, MOST_PANELS)
    names = layout.labels(board, rows, 28)
    panels = layout.panels(len(rows), height=1.6, below=0.3, share_y=True)
    for ax, row in zip(panels.axes, rows, strict=True):
        _panel(ax, runs[row])
        ax.set_title(names[row])
    panels.label("epoch", "on validation data")
    layout.legend(panels.figure)
    epochs = {
        criterion: median(known)
        for criterion in LOOKS
        if (known := [epoch for row in rows if (epoch := _chosen_epoch(runs[row], criterion)) is not None])
    }
    return layout.of_board(
        board,
        f"{name}-{slug(column.dataset)}",
        "learning-curves",
        panels.figure,
        bag_size=column.bag_size,
        dataset=column.dataset,
        bags=column.bags,
        epochs=epochs,
    )


def _chosen_epoch(run: Record, criterion: str) -> int | None:
    result = run["results"].get(criterion)
    return result["epoch"] if result else None


def _panel(ax: Axes, run: Record) -> None:
    for criterion, look in LOOKS.items():
        values = [math.nan if value is None else value for value in run["curves"].get(criterion, [])]
        if not values:
            continue
        epochs = range(0, len(values), max(1, math.ceil(len(values) / MOST_POINTS)))
        ax.plot([*epochs], [values[epoch] for epoch in epochs], color=look.colour, linewidth=1, label=look.label)
        best = _chosen_epoch(run, criterion)
        if best is not None and best < len(values):
            point = ax.plot([best], [values[best]], label="_chosen", zorder=4, clip_on=False)
            point[0].set(color=look.colour, marker=look.marker, markersize=6, markeredgecolor="white")
    ax.yaxis.grid(visible=True)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.margins(x=0.04)

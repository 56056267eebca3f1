"""Learning curves: the criteria on validation data by epoch, and the epochs that they choose."""

from __future__ import annotations

import math
from collections import defaultdict
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
    tasks: dict[str, int] = {}
    runs = _runs_with_curves(board)
    for task in sorted(runs, key=lambda task: (board.tasks.at[task, "bag_size"] != PREFERRED_SIZE, task)):
        tasks.setdefault(board.tasks.at[task, "dataset"], task)
    by_ease = sorted(tasks, key=lambda dataset: (-_mean(board, tasks[dataset]), dataset))
    for dataset in sorted(tasks) if every else dict.fromkeys([*by_ease[:1], *by_ease[-1:]]):
        yield _figure(board, tasks[dataset], runs[tasks[dataset]], name)


def _mean(board: Board, task: int) -> float:
    """Return the mean score of the ranked entries on a task."""
    means = [summary.mean for entry in board.ranked if (summary := board.summary(entry, task))]
    return board.sign * fmean(means) if means else 0.0


def _runs_with_curves(board: Board) -> dict[int, dict[int, Record]]:
    """Return the first run with curves of each untuned entry without pretraining, by task and entry."""
    first: dict[int, dict[int, Record]] = defaultdict(dict)
    is_drawn = (board.entries["pretraining"] == "none") & ~board.entries["is_tuned"]
    runs = board.runs[board.runs["entry"].map(is_drawn)]
    for entry, task, run in zip(runs["entry"], runs["task"], runs["run"], strict=True):
        if any(board.records[run]["curves"].values()):
            first[task].setdefault(entry, board.records[run])
    return first


def _figure(board: Board, task: int, runs: Mapping[int, Record], name: str) -> Drawing:
    entries = layout.prominent(board, runs, MOST_PANELS)
    names = layout.labels(board, entries, 28)
    panels = layout.panels(len(entries), height=1.6, below=0.3, share_y=True)
    for ax, entry in zip(panels.axes, entries, strict=True):
        _panel(ax, runs[entry])
        ax.set_title(names[entry])
    panels.label("epoch", "on validation data")
    layout.legend(panels.figure)
    epochs = {
        criterion: median(known)
        for criterion in LOOKS
        if (known := [epoch for entry in entries if (epoch := _chosen_epoch(runs[entry], criterion)) is not None])
    }
    dataset, bag_size, bags = board.tasks.loc[task, ["dataset", "bag_size", "bags"]]
    return layout.of_board(
        board,
        f"{name}-{slug(dataset)}",
        "learning-curves",
        panels.figure,
        bag_size=bag_size,
        dataset=dataset,
        bags=bags,
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

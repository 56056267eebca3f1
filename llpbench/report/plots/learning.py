"""The course of training: what each criterion saw on the validation rows, and when it was at its best."""

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

USUAL_SIZE = 256
"""the bag size that is drawn where there are several"""

MOST_PANELS = 6

MOST_POINTS = 60
"""of a line: what a panel can show"""


class Course(NamedTuple):
    """How a criterion is drawn."""

    label: str
    colour: str
    marker: str


COURSES: Mapping[str, Course] = {
    "auc": Course("AUC of validation rows", "#000000", "o"),
    "mpiou": Course("mPIoU of validation bags", "#0072b2", "s"),
}


def learning_curves(board: Board, name: str, *, every: bool = False) -> Iterator[Drawing]:
    """A panel for each method, at one bag size: of the easiest and the hardest dataset, or of `every` one."""
    places: dict[str, int] = {}
    for place in sorted(range(len(board.columns)), key=lambda n: board.columns[n].bag_size != USUAL_SIZE):
        if _courses(board, place):
            places.setdefault(board.columns[place].dataset, place)
    ordered = sorted(places, key=lambda dataset: (-_mean(board, places[dataset]), dataset))
    for dataset in sorted(places) if every else dict.fromkeys([*ordered[:1], *ordered[-1:]]):
        yield _of_column(board, places[dataset], name)


def _mean(board: Board, place: int) -> float:
    """The test metric of a column over the ranked rows: how easy it is."""
    known = [summary.mean for row in board.ranked if (summary := board.rows[row].scores[place].headline)]
    return board.sign * fmean(known) if known else 0.0


def _courses(board: Board, place: int) -> dict[int, Record]:
    """By row the run of its first seed that tells its course, of rows without pretraining."""
    found = {}
    for n, row in enumerate(board.rows):
        runs = [run for _, run in sorted(row.scores[place].runs.items()) if any(run["curves"].values())]
        if runs and row.contender.pretraining == "none" and not row.contender.tuned:
            found[n] = runs[0]
    return found


def _of_column(board: Board, place: int, name: str) -> Drawing:
    column, courses = board.columns[place], _courses(board, place)
    rows = layout.prominent(board, courses, MOST_PANELS)
    names = layout.labels(board, rows, 28)
    across = layout.balanced(len(rows))
    figure, axes = layout.panels(len(rows), across=across, height=1.6, below=0.3, share_y=True)
    for ax, row in zip(axes, rows, strict=True):
        _panel(ax, courses[row])
        ax.set_title(names[row])
    for ax in axes[::across]:
        ax.set_ylabel("on validation data")
    layout.label_below(axes, across, "epoch")
    layout.legend(figure)
    chosen = {criterion: [_chosen(courses[row], criterion) for row in rows] for criterion in COURSES}
    epochs = {
        name: median(known) for name, own in chosen.items() if (known := [each for each in own if each is not None])
    }
    facts = {"dataset": column.dataset, "bags": column.bags, "epochs": epochs}
    name = f"{name}-{slug(column.dataset)}"
    return layout.of_board(board, name, "learning-curves", figure, bag_size=column.bag_size, **facts)


def _chosen(run: Record, criterion: str) -> int | None:
    result = run["results"].get(criterion)
    return result["epoch"] if result else None


def _panel(ax: Axes, run: Record) -> None:
    for criterion, course in COURSES.items():
        values = [math.nan if value is None else value for value in run["curves"].get(criterion, [])]
        if not values:
            continue
        epochs = range(0, len(values), max(1, math.ceil(len(values) / MOST_POINTS)))
        ax.plot([*epochs], [values[epoch] for epoch in epochs], color=course.colour, linewidth=1, label=course.label)
        best = _chosen(run, criterion)
        if best is not None and best < len(values):
            look = {"color": course.colour, "marker": course.marker, "markersize": 6, "markeredgecolor": "white"}
            ax.plot([best], [values[best]], label="_chosen", zorder=4, clip_on=False, **look)  # type: ignore[arg-type]
    ax.yaxis.grid(visible=True)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.margins(x=0.04)

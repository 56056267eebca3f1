"""The course of training: what each criterion saw on the validation rows, and when it was at its best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from llpbench.core.record import Record
from llpbench.core.text import slug
from llpbench.report import wording as words
from llpbench.report.boards import Board, Contender
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing

USUAL_SIZE = 256
"""the bag size that is drawn where there are several"""

MOST_PANELS = 12

MOST_FIGURES = 10

MOST_FAINT = 4
"""further seeds in the background"""

FAINT_POINTS = 20
"""of each of them: their course, not their noise"""

MOST_POINTS = 150
"""of a line: what a panel can show"""


@dataclass(frozen=True)
class Course:
    """How a criterion is drawn."""

    label: str
    colour: str
    line: Literal["-", "--"]
    marker: str
    size: float
    """of the marker, in points: one does not hide another at the same place"""


COURSES: Mapping[str, Course] = {
    "auc": Course("AUC of validation rows", "#000000", "-", "o", 5.5),
    "mpiou": Course("mPIoU of validation bags", "#0072b2", "-", "s", 6.5),
    "l1": Course("1 − half their L1 distance", "#d55e00", "--", "^", 4.5),
}


def learning_curves(board: Board, name: str) -> Iterator[Drawing]:
    """A figure for each dataset, at one bag size: a panel for each method."""
    datasets = list(dict.fromkeys(column.dataset for column in board.columns))
    figures = [drawing for dataset in datasets if (drawing := _of_dataset(board, dataset, name)) is not None]
    note = f"The first {MOST_FIGURES} of {len(figures)} datasets are drawn." if len(figures) > MOST_FIGURES else ""
    for figure in figures[:MOST_FIGURES]:
        about = replace(figure.about, caption=layout.sentences(figure.about.caption, note))
        yield replace(figure, about=about)


def _of_dataset(board: Board, dataset: str, name: str) -> Drawing | None:
    found = {place: _courses(board, place) for place, column in enumerate(board.columns) if column.dataset == dataset}
    if not any(found.values()):
        return None
    # where most methods have told their course; of several the usual size, else the smallest
    place = max(
        found, key=lambda p: (len(found[p]), board.columns[p].bag_size == USUAL_SIZE, -board.columns[p].bag_size)
    )
    column, courses = board.columns[place], found[place]
    drawn = dict(list(courses.items())[:MOST_PANELS])
    names = layout.labels(row for row in board.rows if row.contender in drawn)
    across = layout.balanced(len(drawn), most=4)
    figure, axes = layout.panels(len(drawn), across=across, height=1.4, below=0.45, share_y=True)
    for number, (ax, (contender, runs)) in enumerate(zip(axes, drawn.items(), strict=True)):
        _panel(ax, runs, (board.protocol or {}).get("patience"))
        ax.set_title(layout.shown(names[contender], 20))
        if number % across == 0:
            ax.set_ylabel("criterion")
    layout.label_below(axes, across, "epoch")
    legend = [
        Line2D(
            [], [], color=each.colour, linestyle=each.line, marker=each.marker, label=each.label, markersize=each.size
        )
        for each in COURSES.values()
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=3, handlelength=2.8)
    about = About(
        kind="learning-curves",
        name=f"learning-curves-{name}-{slug(dataset)}",
        title=f"Course of training on {words.clean(dataset)}, bags of {column.bags}",
        caption=layout.sentences(
            "Each criterion after each epoch, so drawn that up is good; a marker at the epoch that it chooses. A "
            "criterion "
            "that has not improved for as many epochs as training is patient chooses no later one, even where training "
            "goes on for another: its line is thin from there on, and may rise above its marker. Thick: the lowest "
            "seed; faint: up to four others, thinned out. Epochs count from 0. The journal keeps the course of "
            "the last "
            "stage alone: “+ n” are the epochs of earlier stages and of other kinds of validation.",
            f"The first {len(drawn)} of {len(courses)} methods." if len(drawn) < len(courses) else "",
            layout.plain_note(board),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=None,
        dataset=dataset,
        bag_size=column.bag_size,
    )
    return Drawing(about, figure)


def _courses(board: Board, place: int) -> dict[Contender, list[Record]]:
    """The runs of a column that tell their course, by row and in order of seeds."""
    found = {}
    for row in layout.plain_rows(board):
        runs = [run for _, run in sorted(row.scores[place].runs.items()) if any(run["curves"].values())]
        if runs:
            found[row.contender] = runs
    return found


def _panel(ax: Axes, runs: Sequence[Record], patience: int | None) -> None:
    first, *others = runs
    for criterion, course in COURSES.items():
        for run in others[:MOST_FAINT]:
            faint = _thinned(_values(run, criterion), FAINT_POINTS)
            ax.plot(*faint, color=course.colour, linestyle=course.line, linewidth=0.6, alpha=0.28)
        values = _values(first, criterion)
        chosen = first["results"].get(criterion)
        best = chosen["epoch"] if chosen else None
        settled = len(values) if best is None or patience is None else min(best + patience + 1, len(values))
        epochs, heights = _thinned(values, MOST_POINTS)
        inside = sum(epoch < settled for epoch in epochs)
        look: dict[str, Any] = {"color": course.colour, "linestyle": course.line}
        ax.plot(epochs[:inside], heights[:inside], linewidth=1.3, **look)
        if inside < len(epochs):
            after = slice(max(inside - 1, 0), None)
            ax.plot(epochs[after], heights[after], linewidth=0.6, **look)
        if best is not None and best < len(values):
            ax.plot(
                [best],
                [values[best]],
                color=course.colour,
                marker=course.marker,
                markersize=course.size,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=4,
                clip_on=False,
            )
    earlier = (first["epochs"] or 0) - max(len(_values(first, criterion)) for criterion in COURSES)
    if earlier > 0:
        ax.text(0.98, 0.04, f"+ {earlier:,}", transform=ax.transAxes, ha="right", color="0.4")
    ax.yaxis.grid(visible=True)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.margins(x=0.04)


def _thinned(values: Sequence[float], most: int) -> tuple[Sequence[int], Sequence[float]]:
    """Epochs and values, every so many of them that at most `most` are left."""
    step = max(1, math.ceil(len(values) / most))
    return range(0, len(values), step), values[::step]


def _values(run: Record, criterion: str) -> list[float]:
    """A criterion's values so that more is better and 1 is perfect."""
    values = [math.nan if value is None else value for value in run["curves"].get(criterion, [])]
    return [1 - value / 2 for value in values] if criterion == "l1" else values

"""The course of training: what each criterion saw on the validation rows, and when it was at its best."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

MOST_FAINT = 2
"""further seeds in the background"""

FAINT_POINTS = 20
"""of each of them: their course, not their noise"""

LAST = ""
"""stands for the last stage, which chooses; no stage before it has no name"""

MOST_POINTS = 80
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


def learning_curves(board: Board, name: str, *, every: bool = False) -> Iterator[Drawing]:
    """A panel for each method, at one bag size: of the easiest and the hardest dataset, or of `every` one."""
    datasets = dict.fromkeys(column.dataset for column in board.columns)
    places = {dataset: place for dataset in datasets if (place := _place(board, dataset)) is not None}
    ordered = sorted(places, key=lambda dataset: -_mean(board, places[dataset]))
    for dataset in places if every else dict.fromkeys([*ordered[:1], *ordered[-1:]]):
        yield _of_column(board, places[dataset], name)


def _mean(board: Board, place: int) -> float:
    """The test metric of a column over the ranked rows: how easy it is."""
    known = [summary.mean for row in board.ranked if (summary := board.rows[row].scores[place].headline)]
    return board.sign * math.fsum(known) / len(known) if known else 0.0


def _place(board: Board, dataset: str) -> int | None:
    """The column of a dataset that is drawn: where most methods have told their course without pretraining; of several
    the usual size, else the smallest. None where none has told any."""
    courses = {n: _courses(board, n) for n, column in enumerate(board.columns) if column.dataset == dataset}

    def key(place: int) -> tuple[int, bool, int]:
        size = board.columns[place].bag_size
        return sum(each.pretraining == "none" for each in courses[place]), size == USUAL_SIZE, -size

    return max((place for place, found in courses.items() if found), key=key, default=None)


def _of_column(board: Board, place: int, name: str) -> Drawing:
    column, courses = board.columns[place], _courses(board, place)
    dataset = column.dataset
    drawn = dict(list(courses.items())[:MOST_PANELS])
    names = layout.labels((row for row in board.rows if row.contender in drawn), 24)
    across = layout.balanced(len(drawn), most=4)
    figure, axes = layout.panels(len(drawn), across=across, height=1.6, below=0.6, share_y=True)
    for number, (ax, (contender, runs)) in enumerate(zip(axes, drawn.items(), strict=True)):
        runs = runs[: MOST_FAINT + 1]
        _panel(ax, runs, (board.protocol or {}).get("patience"))
        ax.set_title(names[contender])
        lowest = number + across >= len(drawn)
        ax.set_xlabel(_epochs_of(runs[0], _stages(runs)) or ("epoch" if lowest else ""))
        if number % across == 0:
            ax.set_ylabel("on validation data")
    legend = [
        Line2D(
            [], [], color=each.colour, linestyle=each.line, marker=each.marker, label=each.label, markersize=each.size
        )
        for each in COURSES.values()
    ]
    legend += [
        Line2D([], [], color="0.3", linewidth=1.3, label="may still choose"),
        Line2D([], [], color="0.3", linewidth=0.6, label="patience is over, or an earlier stage"),
    ]
    if any(len(runs) > 1 for runs in drawn.values()):
        legend.append(Line2D([], [], color=COURSES["auc"].colour, linewidth=0.6, alpha=0.4, label="other seeds, faint"))
    if any(len(_stages(runs)) > 1 for runs in drawn.values()):
        legend.append(
            Line2D([], [], color="0.55", linewidth=0.6, marker="|", markersize=9, label="a next stage begins")
        )
    figure.legend(handles=legend, loc="outside lower center", ncols=3, handlelength=2.8)
    about = About(
        kind="learning-curves",
        name=f"learning-curves-{name}-{slug(dataset)}",
        title=f"Course of training on {words.clean(dataset)}, bags of {column.bags}",
        caption=layout.sentences(
            words.caption("plot_learning"),
            f"The first {len(drawn)} of {len(courses)} methods." if len(drawn) < len(courses) else "",
            f"With the encoder {layout.usual_encoder(board)}." if len(board.encoders) > 1 else "",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=None,
        dataset=dataset,
        bag_size=column.bag_size,
        protocol=words.protocol_text(board.protocol),
        note="A marker stands at the epoch that a criterion chooses.",
    )
    return Drawing(about, figure)


def _courses(board: Board, place: int) -> dict[Contender, list[Record]]:
    """The runs of a column that tell their course, by row and in order of seeds: first those without pretraining."""
    usual = (None, layout.usual_encoder(board))
    found = {}
    for row in sorted(board.rows, key=lambda row: row.contender.pretraining != "none"):
        runs = [run for _, run in sorted(row.scores[place].runs.items()) if any(run["curves"].values())]
        if runs and row.contender.encoder in usual:
            found[row.contender] = runs
    return found


def _stages(runs: Sequence[Record]) -> dict[str, range]:
    """Where the epochs of each stage that these runs tell of stand on the axis, by name in order; `LAST` is the last.
    Each begins where the longest of the stage before it has ended."""
    names = dict.fromkeys(name for run in runs for name in run.get("earlier_curves", {}))
    found: dict[str, range] = {}
    start = 0
    for name in (*(name for name in names if name != LAST), LAST):
        epochs = max(len(_values(run, name, criterion)) for run in runs for criterion in COURSES)
        if epochs or name == LAST:
            found[name] = range(start, start + epochs)
            start += epochs
    return found


def _epochs_of(run: Record, drawn: Collection[str]) -> str:
    """Which epochs an axis shows where there was training before the last stage, and how long that took of which no
    curves are `drawn`; "" where there was none."""
    times, pretraining = run["times"], run["spec"]["pretraining"]
    *earlier, last = [name.removeprefix("stage ") for name in times if name.startswith("stage ")] or [""]
    told = [] if pretraining == "none" else [(pretraining, times.get("pretraining"))]
    told += [(stage, times[f"stage {stage}"]) for stage in earlier]
    if not told:
        return ""
    first = next((place for place, (name, _) in enumerate(told) if name in drawn), len(told))
    names = [(name in drawn, f"{layout.shown(name)}{'' if name in drawn else _seconds(spent)}") for name, spent in told]
    lines = [f"of {text}" if known else f"{text}, not drawn" for known, text in names[first:]]
    lines.append(f"of {layout.shown(last)}" if earlier else "")
    epochs = "epoch " + ",\nthen ".join(lines)
    return "\n".join([epochs.rstrip(), *(f"after {text}" for _, text in names[:first])])


def _seconds(spent: float | None) -> str:
    return "" if spent is None else f" ({words.seconds_text(spent)} s)"


def _panel(ax: Axes, runs: Sequence[Record], patience: int | None) -> None:
    stages = _stages(runs)
    for stage, epochs in stages.items():
        for criterion, course in COURSES.items():
            for run in runs[1:]:
                faint = _thinned(_values(run, stage, criterion), FAINT_POINTS, epochs.start)
                ax.plot(*faint, color=course.colour, linestyle=course.line, linewidth=0.6, alpha=0.28)
            _line(ax, runs[0], stage, criterion, epochs.start, patience)
        if epochs.start:
            ax.axvline(epochs.start - 0.5, color="0.55", linewidth=0.6)
    ax.yaxis.grid(visible=True)
    if len(stages) == 1:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    else:
        ticks = dict(_ticks(list(stages.values())))
        ax.set_xticks(list(ticks), list(map(str, ticks.values())))
    ax.margins(x=0.04)


def _line(ax: Axes, run: Record, stage: str, criterion: str, start: int, patience: int | None) -> None:
    """A criterion in a stage: thick where it may still choose, and a marker at what it has chosen."""
    course, values = COURSES[criterion], _values(run, stage, criterion)
    chosen = run["results"].get(criterion) if stage == LAST else None
    best = chosen["epoch"] if chosen else None
    if stage != LAST:
        settled = 0
    else:
        settled = len(values) if best is None or patience is None else min(best + patience + 1, len(values))
    epochs, heights = _thinned(values, MOST_POINTS, start)
    inside = sum(epoch < start + settled for epoch in epochs)
    look: dict[str, Any] = {"color": course.colour, "linestyle": course.line}
    ax.plot(epochs[:inside], heights[:inside], linewidth=1.3, **look)
    if inside < len(epochs):
        after = slice(max(inside - 1, 0), None)
        ax.plot(epochs[after], heights[after], linewidth=0.6, **look)
    if best is not None and best < len(values):
        ax.plot(
            [start + best],
            [values[best]],
            color=course.colour,
            marker=course.marker,
            markersize=course.size,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=4,
            clip_on=False,
        )


def _ticks(stages: Sequence[range]) -> Iterator[tuple[int, int]]:
    """Places on the axis of several stages, and the epochs there: each stage counts its own."""
    total = stages[-1].stop
    for stage, until in zip(stages, [*(each.start for each in stages[1:]), math.inf], strict=True):
        locator = MaxNLocator(nbins=max(1, round(5 * len(stage) / total)), integer=True)
        for epoch in map(int, locator.tick_values(0, len(stage))):
            if 0 <= epoch < len(stage) and stage.start + epoch + total / 10 <= until:
                yield stage.start + epoch, epoch


def _thinned(values: Sequence[float], most: int, start: int) -> tuple[Sequence[int], Sequence[float]]:
    """Epochs from `start` on and values, every so many of them that at most `most` are left."""
    step = max(1, math.ceil(len(values) / most))
    return range(start, start + len(values), step), values[::step]


def _values(run: Record, stage: str, criterion: str) -> list[float]:
    """A criterion's values in a stage so that more is better and 1 is perfect; none where the record has none."""
    curves = run["curves"] if stage == LAST else run.get("earlier_curves", {}).get(stage, {})
    values = [math.nan if value is None else value for value in curves.get(criterion, [])]
    return [1 - value / 2 for value in values] if criterion == "l1" else values

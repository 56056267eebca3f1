"""How searches for hyperparameters went, trial by trial, and which hyperparameters mattered to them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from llpbench.core.criteria import CRITERIA, GUIDES, Criterion
from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.boards import Board, Column, Row
from llpbench.report.importance import Importance, importance
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import FONT_SIZE, WIDTH

MOST_ACROSS = 4
MOST_PANELS = 16
MOST_COLUMNS = 6
MOST_ROWS = 40
"""hyperparameters in a figure"""
MOST_FIGURES = 6

_SHOWN = 0.75
"""of the trials, the better ones, that are surely inside a panel"""
_DONE, _STOPPED, _FAILED, _BEST = "#0072b2", "0.6", "#d55e00", "#009e73"
_MARKERS: Mapping[str, Mapping[str, Any]] = {
    "ok": {"marker": "o", "color": _DONE, "markersize": 3.2, "markeredgewidth": 0},
    "stopped": {"marker": "x", "color": _STOPPED, "markersize": 3.2, "markeredgewidth": 0.9},
    "failed": {"marker": "|", "color": _FAILED, "markersize": 6, "markeredgewidth": 1.2},
}
_SHARE = "#9ecae1"
_NOT_SEARCHED = "not searched"


@dataclass(frozen=True)
class _Searched:
    """The searches of a board: a row for each method, a search or nothing for each column."""

    labels: list[str]
    columns: list[Column]
    searches: list[list[TuningRecord | None]]
    """by row and column"""


def searches(board: Board, tunings: Sequence[TuningRecord], name: str) -> Iterator[Drawing]:
    """The course of the searches whose choices are on a board, and the importance of their hyperparameters."""
    found = _searched(board, tunings)
    if found is not None:
        yield from _histories(board, found, name)
        yield from _importances(board, found, name)


def _searched(board: Board, tunings: Sequence[TuningRecord]) -> _Searched | None:
    """None if nothing on the board was tuned."""
    known = {tuning["tuning"]: tuning for tuning in tunings}
    rows = [row for row in board.rows if row.contender.tuned]
    by_row = [[known.get(score.tuning or "") for score in row.scores] for row in rows]
    places = [place for place in range(len(board.columns)) if any(each[place] for each in by_row)]
    if not places:
        return None
    searched = [[each[place] for place in places] for each in by_row]
    return _Searched(_labels(rows), [board.columns[place] for place in places], searched)


def _labels(rows: Sequence[Row]) -> list[str]:
    """The method, where that tells all rows apart."""
    names = Counter(row.contender.method for row in rows)
    whole = layout.labels(rows)
    return [
        layout.shown(row.contender.method) if names[row.contender.method] == 1 else whole[row.contender] for row in rows
    ]


def _histories(board: Board, found: _Searched, name: str) -> Iterator[Drawing]:
    """Panels: a line of them for each method, where its columns have room side by side."""
    panels = [
        (label, column, search)
        for label, line in zip(found.labels, found.searches, strict=True)
        for column, search in zip(found.columns, line, strict=True)
        if search is not None or len(found.columns) <= MOST_ACROSS
    ]
    across = len(found.columns) if 1 < len(found.columns) <= MOST_ACROSS else layout.balanced(len(panels), MOST_ACROSS)
    most = max(MOST_PANELS // across, 1) * across
    pages = [panels[start : start + most] for start in range(0, len(panels), most)]
    guide = CRITERIA[GUIDES[board.criterion.regime]]
    for number, page in enumerate(pages[:MOST_FIGURES], start=1):
        about = About(
            kind="search-history",
            name=f"search-history-{name}" if len(pages) == 1 else f"search-history-{name}-{number}",
            title="Course of the searches for hyperparameters",
            caption=layout.sentences(
                f"What guided each search, {guide.title}, by trial ({'up' if guide.maximise else 'down'} is good): its "
                "best epoch, for trials that were stopped the best until then. Trial 0 is the default. What lies far "
                "beyond most trials stands at the edge. It is of the split that was searched on, and the best of many "
                "is too good: what it is worth on other splits say the boards.",
                _part(number, len(pages)),
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
        )
        yield Drawing(about, _history_figure(page, across, guide))


def _part(number: int, parts: int) -> str:
    return layout.sentences(
        f"Part {number} of {parts}." if parts > 1 else "",
        f"Only {MOST_FIGURES} parts are drawn." if parts > MOST_FIGURES else "",
    )


def _history_figure(panels: Sequence[tuple[str, Column, TuningRecord | None]], across: int, guide: Criterion) -> Figure:
    legend = [
        Line2D([], [], linestyle="none", label=label, **{**_MARKERS[status], "markersize": 5})
        for status, label in (("ok", "trial"), ("stopped", "stopped at a rung"), ("failed", "failed"))
    ]
    legend += [
        Line2D([], [], color=_BEST, linewidth=1.3, label="best so far"),
        Line2D([], [], color="black", linewidth=0.8, linestyle="--", label="default"),
    ]
    figure, axes = layout.panels(len(panels), across=across, height=1.5, below=0.2 + layout.legend_height(legend))
    for number, (ax, (label, column, search)) in enumerate(zip(axes, panels, strict=True)):
        if search is None:
            ax.set_visible(False)
            continue
        _history(ax, search, guide)
        room = 88 // across
        ax.set_title(f"{layout.shown(label, room)}\n{layout.shown(column.title, room)}", fontsize=FONT_SIZE)
        if number % across == 0:
            ax.set_ylabel(guide.name.upper())
    layout.label_below(axes, min(across, len(panels)), "trial")
    layout.legend_below(figure, legend)
    return figure


def _history(ax: Axes, search: TuningRecord, guide: Criterion) -> None:
    values = {
        trial["number"]: value
        for trial in search["trials"]
        if (value := trial["values"].get(guide.name)) is not None and trial["status"] in ("ok", "stopped")
    }
    states = {trial["number"]: trial["status"] for trial in search["trials"]}
    best = [*_best_so_far({number: values[number] for number in values if states[number] == "ok"}, guide)]
    if values:
        low, high = _range(values, best, guide)
        margin = 0.07 * (high - low) or 0.01 * abs(high) or 1.0
        ax.set_ylim(low - margin, high + margin)
        for status in ("stopped", "ok"):
            own = {number: min(max(value, low), high) for number, value in values.items() if states[number] == status}
            if own:  # a line of nothing that is not cut off has no place, and the layout fails
                ax.plot([*own], [*own.values()], linestyle="none", zorder=3, clip_on=False, **_MARKERS[status])
    if 0 in values:
        ax.axhline(values[0], color="black", linewidth=0.8, linestyle="--", zorder=1.5)
    if best:
        steps = [*best, (max(states), best[-1][1])]
        numbers, heights = zip(*steps, strict=True)
        ax.plot(numbers, heights, drawstyle="steps-post", color=_BEST, linewidth=1.3, zorder=2)
    for number in states.keys() - values.keys():
        bottom = ax.get_xaxis_transform()
        ax.plot([number], [0.0], linestyle="none", transform=bottom, clip_on=False, **_MARKERS["failed"])
    ax.yaxis.grid(visible=True)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4))
    ax.set_xlim(-1, max(len(states), 1))


def _best_so_far(values: Mapping[int, float], guide: Criterion) -> Iterator[tuple[int, float]]:
    """The trials that were better than all before, with their values."""
    best = math.nan
    for number in sorted(values):
        if guide.better(values[number], best):
            best = values[number]
            yield number, best


def _range(values: Mapping[int, float], best: Sequence[tuple[int, float]], guide: Criterion) -> tuple[float, float]:
    """What a panel shows: from the best to where most trials are, and all of the line of the best so far."""
    ordered = sorted(values.values(), reverse=guide.maximise)
    inside = [*ordered[: math.ceil(_SHOWN * len(ordered))], *(value for _, value in best)]
    return min(inside), max(inside)


def _importances(board: Board, found: _Searched, name: str) -> Iterator[Drawing]:
    """A block for each method: its hyperparameters, in every column."""
    blocks = [
        (label, names) for label, line in zip(found.labels, found.searches, strict=True) if (names := _names(line))
    ]
    if not blocks:
        return
    lines = dict(zip(found.labels, found.searches, strict=True))
    widths = [
        range(len(found.columns))[start : start + MOST_COLUMNS] for start in range(0, len(found.columns), MOST_COLUMNS)
    ]
    pages = [(part, places) for places in widths for part in _pages(blocks)]
    for number, (part, places) in enumerate(pages[:MOST_FIGURES], start=1):
        told = {label: [_told(lines[label][place]) for place in places] for label, _ in part}
        about = About(
            kind="search-importance",
            name=f"search-importance-{name}" if len(pages) == 1 else f"search-importance-{name}-{number}",
            title="Importance of hyperparameters",
            caption=layout.sentences(
                "Percent of the variance over the search space that a hyperparameter explains by itself, the others "
                "averaged out (functional ANOVA, main effects); what is left to 100 is of several together. Computed "
                f"with a random forest that has learned from the trials how they rank by {_guide(board).title}: "
                f"{_of_trials([each for line in told.values() for each in line])}. Few trials make a coarse picture.",
                _untold(told, [found.columns[place] for place in places]),
                _part(number, len(pages)),
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
        )
        yield Drawing(about, _importance_figure(part, told, [found.columns[place] for place in places]))


def _guide(board: Board) -> Criterion:
    return CRITERIA[GUIDES[board.criterion.regime]]


def _names(searches: Sequence[TuningRecord | None]) -> list[str]:
    """The hyperparameters of some searches."""
    return list(dict.fromkeys(name for search in searches if search is not None for name in search["spec"]["space"]))


def _pages(blocks: Sequence[tuple[str, list[str]]]) -> list[list[tuple[str, list[str]]]]:
    """Blocks, figure by figure."""
    pages: list[list[tuple[str, list[str]]]] = []
    for block in blocks:
        if pages and sum(len(names) for _, names in pages[-1]) + len(block[1]) <= MOST_ROWS:
            pages[-1].append(block)
        else:
            pages.append([block])
    return pages


def _told(search: TuningRecord | None) -> Importance | str:
    return _NOT_SEARCHED if search is None else importance(search)


def _of_trials(told: Sequence[Importance | str]) -> str:
    """From how many trials, and after how many epochs."""
    known = [each for each in told if isinstance(each, Importance)]
    if not known:
        return "of none here"
    least, most = (f(each.trials for each in known) for f in (min, max))
    number = f"{least}" if least == most else f"{least} to {most}"
    epochs = sorted({each.epochs for each in known if each.epochs is not None})
    if not epochs:
        return f"{number} trials a search, at their end"
    at = f"after {' or '.join(map(str, epochs))} epochs, the highest rung that all have reached"
    some = ", or at their end where none was stopped" if any(each.epochs is None for each in known) else ""
    return f"{number} trials a search, {at}{some}"


def _untold(told: Mapping[str, Sequence[Importance | str]], columns: Sequence[Column]) -> str:
    """Of which searches nothing is told, and why; "" if something is of all."""
    lines = [
        f"{label} on {column.title} ({each})"
        for label, line in told.items()
        for column, each in zip(columns, line, strict=True)
        if isinstance(each, str) and each != _NOT_SEARCHED
    ]
    return f"{words.NOTHING}: nothing can be told of {', '.join(words.some_of(lines, 5))}." if lines else ""


def _importance_figure(
    blocks: Sequence[tuple[str, list[str]]], told: Mapping[str, Sequence[Importance | str]], columns: Sequence[Column]
) -> Figure:
    heights = [len(names) for _, names in blocks]
    figure = Figure(figsize=(WIDTH, 0.5 + 0.19 * sum(heights) + 0.3 * len(blocks)))
    axes = figure.subplots(len(blocks), 1, squeeze=False, height_ratios=heights).ravel()
    for number, (ax, (label, names)) in enumerate(zip(axes, blocks, strict=True)):
        for x, each in enumerate(told[label]):
            for y, name in enumerate(names):
                _share(ax, x, y, each.shares.get(name) if isinstance(each, Importance) else None)
        ax.set_xlim(0, len(columns))
        ax.set_ylim(len(names), 0)
        ax.set_yticks([y + 0.5 for y in range(len(names))], [layout.shown(name) for name in names])
        ax.set_xticks([x + 0.5 for x in range(len(columns))], [_heading(each, len(columns)) for each in columns])
        ax.tick_params(length=0, labelbottom=number == len(blocks) - 1)
        for side in ax.spines.values():
            side.set_visible(False)
        ax.set_title(label)
    return figure


def _heading(column: Column, number: int) -> str:
    """On two lines, in the room that each of so many columns has."""
    return f"{layout.shown(column.dataset, 84 // number)}\n{column.bags}"


def _share(ax: Axes, x: int, y: int, percent: float | None) -> None:
    """A bar from the left of its place."""
    width = 0.94 * (percent or 0.0) / 100
    ax.add_patch(Rectangle((x, y + 0.06), 0.94, 0.88, facecolor="0.96", linewidth=0))
    ax.add_patch(Rectangle((x, y + 0.06), width, 0.88, facecolor=_SHARE, linewidth=0))
    shown = words.NOTHING if percent is None else f"{percent:.0f}"
    ax.text(x + 0.9, y + 0.52, shown, ha="right", va="center")

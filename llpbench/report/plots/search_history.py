"""How searches for hyperparameters went, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from llpbench.core.criteria import METRICS, Criterion
from llpbench.core.record import TuningRecord
from llpbench.report.boards import Board, Column
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.searches import MOST_FIGURES, guide_of, part_note, searched
from llpbench.report.plots.style import FONT_SIZE

MOST_ACROSS = 4
MOST_PANELS = 16
"""of a figure"""

_SHOWN = 0.75
"""of the trials, the better ones, that are surely inside a panel"""
_BELOW, _ABOVE = "v", "^"
"""where trials that lie beyond a panel stand at its edge"""
_DONE, _STOPPED, _FAILED, _BEST = "#0072b2", "0.6", "#d55e00", "#009e73"
_MARKERS: Mapping[str, Mapping[str, Any]] = {
    "ok": {"marker": "o", "color": _DONE, "markersize": 3.2, "markeredgewidth": 0},
    "stopped": {"marker": "x", "color": _STOPPED, "markersize": 3.2, "markeredgewidth": 0.9},
    "failed": {"marker": "|", "color": _FAILED, "markersize": 6, "markeredgewidth": 1.2},
}


def search_histories(board: Board, tunings: Sequence[TuningRecord], name: str) -> Iterator[Drawing]:
    """A panel for each search whose choice is on a board: a line of them for each method, where there is room."""
    found = searched(board, tunings)
    if found is None:
        return
    panels = [
        (label, column, search)
        for label, line in zip(found.labels, found.searches, strict=True)
        for column, search in zip(found.columns, line, strict=True)
        if search is not None or len(found.columns) <= MOST_ACROSS
    ]
    across = len(found.columns) if 1 < len(found.columns) <= MOST_ACROSS else layout.balanced(len(panels), MOST_ACROSS)
    most = max(MOST_PANELS // across, 1) * across
    pages = [panels[start : start + most] for start in range(0, len(panels), most)]
    guide = guide_of(board)
    for number, page in enumerate(pages[:MOST_FIGURES], start=1):
        about = About(
            kind="search-history",
            name=f"search-history-{name}" if len(pages) == 1 else f"search-history-{name}-{number}",
            title="Course of the searches for hyperparameters",
            caption=layout.sentences(
                f"What guided each search, {guide.title}{_scale(guide)}, by trial "
                f"({'up' if guide.maximise else 'down'} is good): its best epoch, for trials that were stopped the "
                "best until then. Trial 0 is the default. What lies far beyond most trials is an arrow at the edge. "
                "It is of the split that was searched on, and the best of many is too good: what it is worth on other "
                "splits say the boards.",
                part_note(number, len(pages)),
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
        )
        yield Drawing(about, _history_figure(page, across, guide))


def _history_figure(panels: Sequence[tuple[str, Column, TuningRecord | None]], across: int, guide: Criterion) -> Figure:
    legend = [
        Line2D([], [], linestyle="none", label=label, **{**_MARKERS[status], "markersize": 5})
        for status, label in (("ok", "trial"), ("stopped", "stopped at a rung"), ("failed", "failed"))
        if any(trial["status"] == status for _, _, search in panels if search for trial in search["trials"])
    ]
    edge = Line2D([], [], linestyle="none", marker=_BELOW if guide.maximise else _ABOVE, color="0.3", markersize=4)
    edge.set_label("beyond the panel")
    legend.append(edge)
    legend += [
        Line2D([], [], color=_BEST, linewidth=1.3, label="best so far"),
        Line2D([], [], color="black", linewidth=0.8, linestyle="--", label="default"),
    ]
    figure, axes = layout.panels(len(panels), across=across, height=1.5, below=0.2 + layout.legend_height(legend))
    beyond = False
    titles = layout.shown_apart([*dict.fromkeys(label for label, _, _ in panels)], 88 // across)
    labels = dict(zip(dict.fromkeys(label for label, _, _ in panels), titles, strict=True))
    for number, (ax, (label, column, search)) in enumerate(zip(axes, panels, strict=True)):
        if search is None:
            ax.set_visible(False)
            continue
        beyond = _history(ax, search, guide) or beyond
        ax.set_title(f"{labels[label]}\n{layout.shown(column.title, 88 // across)}", fontsize=FONT_SIZE)
        if number % across == 0:
            ax.set_ylabel(f"{guide.name.upper()}{_scale(guide)}")
    layout.label_below(axes, min(across, len(panels)), "trial")
    layout.legend_below(figure, [entry for entry in legend if beyond or entry is not edge])
    return figure


def _history(ax: Axes, search: TuningRecord, guide: Criterion) -> bool:
    """Whether some trials lie beyond what the panel shows."""
    values = {
        trial["number"]: value * _times(guide)
        for trial in search["trials"]
        if (value := trial["values"].get(guide.name)) is not None and trial["status"] in ("ok", "stopped")
    }
    states = {trial["number"]: trial["status"] for trial in search["trials"]}
    best = [*_best_so_far({number: values[number] for number in values if states[number] == "ok"}, guide)]
    is_beyond = False
    if values:
        low, high = _range(values, best, guide)
        margin = 0.07 * (high - low) or 0.01 * abs(high) or 1.0
        ax.set_ylim(low - margin, high + margin)
        for status in ("stopped", "ok"):
            own = {number: value for number, value in values.items() if states[number] == status}
            inside = {number: value for number, value in own.items() if low <= value <= high}
            if inside:  # a line of nothing that is not cut off has no place, and the layout fails
                ax.plot([*inside], [*inside.values()], linestyle="none", zorder=3, clip_on=False, **_MARKERS[status])
            for edge, marker in ((low, _BELOW), (high, _ABOVE)):
                beyond = [
                    number for number, value in own.items() if number not in inside and (value < low) == (edge == low)
                ]
                look: dict[str, Any] = {"marker": marker, "color": _MARKERS[status]["color"], "markersize": 3.8}
                is_beyond = is_beyond or bool(beyond)
                if beyond:
                    ax.plot(beyond, [edge] * len(beyond), linestyle="none", zorder=3, clip_on=False, **look)
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
    return is_beyond


def _times(guide: Criterion) -> float:
    """100 of what tables show as a percentage."""
    return 100.0 if guide.name in METRICS and METRICS[guide.name].percent else 1.0


def _scale(guide: Criterion) -> str:
    return " × 100" if _times(guide) > 1 else ""


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

"""Which hyperparameters mattered to searches (`report/importance.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.boards import Board, Column
from llpbench.report.importance import Importance, importance
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.searches import MOST_FIGURES, guide_of, part_note, searched
from llpbench.report.plots.style import WIDTH

MOST_COLUMNS = 6
MOST_ROWS = 40
"""hyperparameters in a figure"""

_BAR = 0.68
"""of the width of a place, for a bar of 100; the rest is for the number"""
_NUMBER = 20
"""points from the end of that bar to the end of its number: beside it, however wide the place is"""

_SHARE = "#9ecae1"
_NOT_SEARCHED = "not searched"


def search_importances(board: Board, tunings: Sequence[TuningRecord], name: str) -> Iterator[Drawing]:
    """A block for each method whose choices are on a board: its hyperparameters, in every column."""
    found = searched(board, tunings)
    if found is None:
        return
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
                f"with a random forest that has learned from the trials how they rank by {guide_of(board).title}: "
                f"{_of_trials([each for line in told.values() for each in line])}. Few trials make a coarse picture.",
                _untold(told, [found.columns[place] for place in places]),
                part_note(number, len(pages)),
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
            note="% of the variance over the search space that a hyperparameter explains by itself",
        )
        yield Drawing(about, _importance_figure(part, told, [found.columns[place] for place in places]))


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
        ax.set_yticks([y + 0.5 for y in range(len(names))], layout.shown_apart(names, 24))
        ax.set_xticks([x + _BAR / 2 for x in range(len(columns))], [_heading(each, len(columns)) for each in columns])
        ax.tick_params(length=0, labelbottom=number == len(blocks) - 1)
        for side in ax.spines.values():
            side.set_visible(False)
        ax.set_title(label)
    return figure


def _heading(column: Column, number: int) -> str:
    """On two lines, in the room that each of so many columns has."""
    return f"{layout.shown(column.dataset, 84 // number)}\n{column.bags}"


def _share(ax: Axes, x: int, y: int, percent: float | None) -> None:
    """A bar from the left of its place, and its number beside it, on the ground: seen in light and dark."""
    width = _BAR * (percent or 0.0) / 100
    ax.add_patch(Rectangle((x, y + 0.06), _BAR, 0.88, facecolor="0.96", linewidth=0))
    ax.add_patch(Rectangle((x, y + 0.06), width, 0.88, facecolor=_SHARE, linewidth=0))
    shown = words.NOTHING if percent is None else f"{percent:.0f}"
    ax.annotate(
        shown,
        (x + _BAR, y + 0.52),
        (_NUMBER, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        annotation_clip=False,
    )

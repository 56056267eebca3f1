"""Every mean of a leaderboard at one glance."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import FONT_SIZE, WIDTH

MOST_COLUMNS = 12
"""of one figure: what leaves room for the numbers"""

MOST_ROWS = 60

MOST_FIGURES = 6

COLOURS = "cividis"
"""evenly perceived, by the colour-blind too, and ever lighter in grey"""

DARK_INK, LIGHT_INK = "#010101", "#fefefe"
"""on colours that stay as they are on a dark ground"""

ROW_HEIGHT = 0.3
"""inches: two lines"""

CHANCE = 50.0

KEPT = frozenset(map(to_hex, matplotlib.colormaps[COLOURS](range(256)))) | {DARK_INK, LIGHT_INK}
"""colours of cells, and the inks on them"""

LINE_HEIGHT = 1.2 * FONT_SIZE
"""points"""


def heat_maps(board: Board, name: str) -> Iterator[Drawing]:
    """Mean test AUC of each row in each column; figures of at most `MOST_COLUMNS` columns."""
    rows = [row for row in board.rows if any(score.headline for score in row.scores)][:MOST_ROWS]
    pages = _pages(board)
    for number, places in enumerate(pages[:MOST_FIGURES], start=1) if rows else ():
        left_out = len(board.rows) - len(rows)
        datasets = {board.columns[place].dataset for place in places}
        about = About(
            kind="heat-map",
            name=f"heat-map-{name}" if len(pages) == 1 else f"heat-map-{name}-{number}",
            title="Mean test AUC of every method and column",
            caption=layout.sentences(
                "Mean test AUC × 100 over seeds and, below it, its standard deviation; rows as on the "
                "leaderboard. Colours go from the worst of a column (or "
                "chance, if that is better) to its best; ceilings stand aside, without colour. "
                f"Hatched ({words.NOTHING}): no result. *: seeds are lacking.",
                f"{plural(left_out, 'row')} without room or result left out." if left_out else "",
                f"Part {number} of {len(pages)}." if len(pages) > 1 else "",
                f"Only {MOST_FIGURES} parts are drawn." if len(pages) > MOST_FIGURES else "",
                layout.setting(board),
            ),
            bagging=board.bagging,
            criterion=board.criterion.name,
            dataset=datasets.pop() if len(datasets) == 1 else None,
        )
        yield Drawing(about, _figure(board, rows, places), KEPT)


def _pages(board: Board) -> list[list[int]]:
    """Indices of columns, figure by figure; a dataset's columns stay together while they fit."""
    pages: list[list[int]] = []
    for dataset in dict.fromkeys(column.dataset for column in board.columns):
        own = [place for place, column in enumerate(board.columns) if column.dataset == dataset]
        if pages and len(pages[-1]) + len(own) <= MOST_COLUMNS:
            pages[-1] += own
        else:
            pages += [own[start : start + MOST_COLUMNS] for start in range(0, len(own), MOST_COLUMNS)]
    return pages


def _figure(board: Board, rows: Sequence[Row], places: Sequence[int]) -> Figure:
    names = layout.labels(rows)
    spans = Counter(board.columns[place].dataset for place in places)
    width = (WIDTH - 2.2) / len(places)
    slant = any(0.075 * min(len(dataset), 16) > count * width for dataset, count in spans.items())
    sizes = [board.columns[place].bags.replace("–", "–\n") for place in places]
    raised = max(size.count("\n") for size in sizes) * LINE_HEIGHT
    figure = Figure(figsize=(WIDTH, (1.5 if slant else 0.85) + ROW_HEIGHT * len(rows) + raised / 72))
    ax = figure.subplots()
    shares = np.full((len(rows), len(places)), np.nan)
    for x, place in enumerate(places):
        means = [
            summary.mean for row in rows if row.contender.role != "ceiling" and (summary := row.scores[place].headline)
        ]
        scale = _scale(means)
        for y, row in enumerate(rows):
            summary = row.scores[place].headline
            if summary is not None and row.contender.role != "ceiling":
                shares[y, x] = float(scale(summary.mean))
            _number(ax, x, y, row, place, shares[y, x])
    ax.patch.set(facecolor="white", hatch="////", edgecolor="0.75")
    aside = [
        [row.contender.role == "ceiling" and row.scores[place].headline is not None for place in places] for row in rows
    ]
    edges: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8}
    ax.pcolormesh(np.ma.masked_where(~np.array(aside), np.zeros_like(shares)), cmap=ListedColormap(["white"]), **edges)
    ax.pcolormesh(np.ma.masked_invalid(shares), cmap=COLOURS, vmin=0, vmax=1, **edges)
    ax.set_xlim(0, len(places))
    ax.set_ylim(len(rows), 0)
    ax.set_yticks(np.arange(len(rows)) + 0.5, [names[row.contender] for row in rows])
    ax.set_xticks(np.arange(len(places)) + 0.5, sizes)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    _headings(ax, spans, slant, raised)
    _separate_roles(ax, rows, len(places))
    colours = matplotlib.colormaps[COLOURS]
    scale_key = {"worst": 0.0, "halfway": 0.5, "best of the column": 1.0}
    legend = [Patch(color=colours(value), label=label) for label, value in scale_key.items()]
    if any(row.scores[place].headline is None for row in rows for place in places):
        legend.append(Patch(facecolor="white", hatch="////", edgecolor="0.75", label="no result"))
    figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    return figure


def _scale(means: Sequence[float]) -> Normalize:
    """From a column's worst, or chance if that is worse, to its best."""
    if not means:
        return Normalize(0, 1)
    high, low = max(means), max(min(means), CHANCE)
    return Normalize(low, high, clip=True) if low < high else Normalize(high - 1, high, clip=True)


def _number(ax: Axes, x: int, y: int, row: Row, place: int, share: float) -> None:
    """Mean and spread over seeds, in an ink that is seen on the cell's colour."""
    score = row.scores[place]
    if score.headline is None:
        ax.text(x + 0.5, y + 0.5, words.NOTHING, ha="center", va="center")
        return
    lacking = "*" if len(score.values[HEADLINE]) < score.expected else ""
    spread = "" if score.headline.std is None else f"\n±{score.headline.std:.1f}"
    ink = "black" if np.isnan(share) else DARK_INK if _luminance(_colour(share)) >= 0.47 else LIGHT_INK
    text = f"{score.headline.mean:.1f}{lacking}{spread}"
    inside = ax.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=ink, linespacing=1.0)
    inside.set_in_layout(False)  # hundreds of texts would be measured for nothing


def _colour(share: float) -> Any:
    return matplotlib.colormaps[COLOURS](share)


def _headings(ax: Axes, spans: Mapping[str, int], slant: bool, raised: float) -> None:
    """Each dataset's name over its columns, `raised` by so many points over sizes of several lines."""
    figure = ax.get_figure(root=True)
    line, label = (
        offset_copy(ax.get_xaxis_transform(), fig=figure, y=y, units="points") for y in (16 + raised, 18.5 + raised)
    )
    first = 0
    for dataset, count in spans.items():
        ax.plot([first + 0.08, first + count - 0.08], [1, 1], color="0.3", lw=0.7, clip_on=False, transform=line)
        ax.text(
            first + (0.5 if slant else count / 2),
            1,
            layout.shown(dataset, 16),
            ha="left" if slant else "center",
            va="bottom",
            fontsize=FONT_SIZE + 0.5,
            rotation=40 if slant else 0,
            rotation_mode="anchor",
            transform=label,
        )
        first += count


def _separate_roles(ax: Axes, rows: Sequence[Row], width: int) -> None:
    for y, (above, below) in enumerate(itertools.pairwise(rows), start=1):
        if above.contender.role != below.contender.role:
            ax.plot([0, width], [y, y], color="black", linewidth=1, clip_on=False)


def _luminance(colour: Any) -> float:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue

"""Every mean of a leaderboard at one glance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH

MOST_METHODS = 18
"""what leaves room for the numbers"""

MOST_COLUMNS = 36
"""of the leaderboard, each of which is a row here"""

COLOURS = "cividis"
"""evenly perceived, by the colour-blind too, and ever lighter in grey"""

DARK_INK, LIGHT_INK = "#010101", "#fefefe"
"""on colours that stay as they are on a dark ground"""

ROW_HEIGHT = 0.28
"""inches: two lines"""

CHANCE = 50.0

SCALE = {"worst": 0.0, "halfway": 0.5, "best of the row": 1.0}
"""what the legend says of colours"""

KEPT = frozenset({to_hex(matplotlib.colormaps[COLOURS](value)) for value in SCALE.values()} | {DARK_INK, LIGHT_INK})
"""colours that stay as they are on a dark ground"""


def heat_map(board: Board, name: str) -> Iterator[Drawing]:
    """Mean test AUC of each ranked row in each column: a row a column of the board, methods side by side."""
    ranked = board.standings.ranked
    rows, places = ranked[:MOST_METHODS], [*range(len(board.columns))][:MOST_COLUMNS]
    if not rows:
        return
    about = About(
        kind="heat-map",
        name=f"heat-map-{name}",
        title="Mean test AUC by dataset and bag size",
        caption=layout.sentences(
            "Mean test AUC × 100 over seeds of the ranked methods, the best on the left, and below it the standard "
            "deviation. In each row colours go from the worst (or chance, if that is better) to the best.",
            f"Hatched ({words.NOTHING}): no result." if _lacks_any(rows, places) else "",
            "*: seeds are missing." if any(_is_short(row, place) for row in rows for place in places) else "",
            layout.left_out(len(ranked) - len(rows), "ranked method"),
            layout.left_out(len(board.columns) - len(places), "column"),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, _figure(board, rows, places), KEPT)


def _figure(board: Board, rows: Sequence[Row], places: Sequence[int]) -> Figure:
    names = layout.labels(rows, 26)
    figure = Figure(figsize=(WIDTH, 1.7 + ROW_HEIGHT * len(places)))
    ax = figure.subplots()
    shares = np.full((len(places), len(rows)), np.nan)
    for y, place in enumerate(places):
        scale = _scale([summary.mean for row in rows if (summary := row.scores[place].headline)])
        for x, row in enumerate(rows):
            summary = row.scores[place].headline
            if summary is not None:
                shares[y, x] = float(scale(summary.mean))
            _number(ax, x, y, row, place, shares[y, x])
    lacking: dict[str, Any] = {"facecolor": "white", "hatch": "////", "edgecolor": "0.75"}
    ax.patch.set(**lacking)
    across, down = len(rows), len(places)
    cells: dict[str, Any] = {"interpolation": "none", "aspect": "auto", "extent": (0, across, down, 0)}
    ax.imshow(np.ma.masked_invalid(shares), cmap=COLOURS, vmin=0, vmax=1, **cells)
    ax.vlines(range(across + 1), 0, down, color="white", linewidth=0.8)
    ax.hlines(range(down + 1), 0, across, color="white", linewidth=0.8)
    ax.set_xlim(0, len(rows))
    ax.set_ylim(len(places), 0)
    ax.set_xticks(np.arange(len(rows)) + 0.5, [names[row.contender] for row in rows], rotation=50, ha="left")
    ax.set_yticks(np.arange(len(places)) + 0.5, _row_names(board, places))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    for y, (above, below) in enumerate(itertools.pairwise(places), start=1):
        if board.columns[above].dataset != board.columns[below].dataset:
            ax.plot([0, len(rows)], [y, y], color="black", linewidth=1, clip_on=False)
    colours = matplotlib.colormaps[COLOURS]
    legend = [Patch(color=colours(value), label=label) for label, value in SCALE.items()]
    if _lacks_any(rows, places):
        legend.append(Patch(**lacking, label="no result"))
    figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    return figure


def _row_names(board: Board, places: Sequence[int]) -> list[str]:
    """Dataset and size of bags; of further sizes of a dataset the size alone."""
    columns = [board.columns[place] for place in places]
    first = [not n or column.dataset != columns[n - 1].dataset for n, column in enumerate(columns)]
    return [
        f"{layout.shown(column.dataset, 20)}  {column.bags}" if is_first else column.bags
        for column, is_first in zip(columns, first, strict=True)
    ]


def _lacks_any(rows: Sequence[Row], places: Sequence[int]) -> bool:
    return any(row.scores[place].headline is None for row in rows for place in places)


def _is_short(row: Row, place: int) -> bool:
    """Whether a score lacks seeds."""
    score = row.scores[place]
    return score.headline is not None and len(score.values[HEADLINE]) < score.expected


def _scale(means: Sequence[float]) -> Normalize:
    """From the worst of a row, or chance if that is worse, to its best."""
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
    lacking = "*" if _is_short(row, place) else ""
    spread = "" if score.headline.std is None else f"\n±{score.headline.std:.{0 if score.headline.std >= 9.95 else 1}f}"
    ink = DARK_INK if _luminance(_colour(share)) >= 0.47 else LIGHT_INK
    text = f"{score.headline.mean:.1f}{lacking}{spread}"
    inside = ax.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=ink, linespacing=1.0)
    inside.set_in_layout(False)  # hundreds of texts would be measured for nothing


def _colour(share: float) -> Any:
    return matplotlib.colormaps[COLOURS](share)


def _luminance(colour: Any) -> float:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue

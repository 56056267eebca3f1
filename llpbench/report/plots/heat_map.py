"""Every mean of a leaderboard at one glance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import matplotlib
import numpy as np
import seaborn
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pandas import DataFrame

from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH

MOST_METHODS = 18
"""what leaves room for the numbers"""

MOST_COLUMNS = 36
"""of the leaderboard, each of which is a row here"""

COLOURS = "cividis"
"""evenly perceived, by the colour-blind too, and ever lighter in grey"""

ROW_HEIGHT = 0.28
"""inches: two lines"""

CHANCE = 50.0

SCALE = {"worst": 0.0, "halfway": 0.5, "best of the row": 1.0}
"""what the legend says of colours"""


def heat_map(board: Board, name: str) -> Iterator[Drawing]:
    """Mean of each ranked row in each column: a row a column of the board, methods side by side."""
    rows, places = board.ranked[:MOST_METHODS], [*range(len(board.columns))][:MOST_COLUMNS]
    if not rows:
        return
    values = board.values()[rows].groupby(level=0)
    means, stds = (each.reindex(places) for each in (values.mean(), values.std()))
    short = DataFrame({row: [len(score.values) < score.expected for score in board.rows[row].scores] for row in rows})
    short = short.loc[places] & means.notna()
    about = layout.about(
        board,
        "heat-map",
        name,
        f"Mean test {board.metric.title} by dataset and bag size",
        words.caption("plot_heat_map", board),
        f"Hatched ({words.NOTHING}): no result." if means.isna().any(axis=None) else "",
        "*: seeds are missing." if short.any(axis=None) else "",
        layout.left_out(len(board.ranked) - len(rows), "ranked method"),
        layout.left_out(len(board.columns) - len(places), "column"),
    )
    yield Drawing(about, _figure(board, means, stds, short))


def _figure(board: Board, means: DataFrame, stds: DataFrame, short: DataFrame) -> Figure:
    names = layout.labels([board.rows[row] for row in means], 26)
    figure = Figure(figsize=(WIDTH, 1.7 + ROW_HEIGHT * len(means)))
    ax = figure.subplots()
    better = board.sign * means
    low = better.min(axis="columns").clip(lower=CHANCE if board.metric.name == HEADLINE else None)
    span = (better.max(axis="columns") - low).clip(lower=0)
    shares = better.sub(low, axis="index").div(span.where(span > 0, 1.0), axis="index").clip(0, 1)
    shares = shares.where(span.gt(0), means.notna().astype(float).where(means.notna()), axis="index")
    texts = [
        [_text(*each) for each in zip(*own, strict=True)]
        for own in zip(means.to_numpy(), stds.to_numpy(), short.to_numpy(), strict=True)
    ]
    lacking = means.isna()
    ax.patch.set(facecolor="white", hatch="////", edgecolor="0.75")
    seaborn.heatmap(
        shares, mask=lacking, cmap=COLOURS, vmin=0, vmax=1, annot=np.array(texts), fmt="", cbar=False, linewidths=0.8,
        annot_kws={"linespacing": 1.0}, ax=ax,
    )  # fmt: skip
    for y, x in np.argwhere(lacking.to_numpy()):
        ax.text(x + 0.5, y + 0.5, words.NOTHING, ha="center", va="center")
    for text in ax.texts:
        text.set_in_layout(False)  # hundreds of texts would be measured for nothing
    ax.set(xlabel="", ylabel="")
    ax.set_xticks(
        np.arange(len(names)) + 0.5, [names[board.rows[row].contender] for row in means], rotation=50, ha="left"
    )
    ax.set_yticks(np.arange(len(means)) + 0.5, _row_names(board, [*means.index]), rotation=0)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for y, (above, below) in enumerate(itertools.pairwise(means.index), start=1):
        if board.columns[above].dataset != board.columns[below].dataset:
            ax.plot([0, len(names)], [y, y], color="black", linewidth=1, clip_on=False)
    colours = matplotlib.colormaps[COLOURS]
    legend = [Patch(color=colours(value), label=label) for label, value in SCALE.items()]
    if lacking.any(axis=None):
        legend.append(Patch(facecolor="white", hatch="////", edgecolor="0.75", label="no result"))
    figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    return figure


def _text(mean: float, std: float, short: bool) -> str:
    """Mean and spread over seeds."""
    if np.isnan(mean):
        return ""
    spread = "" if np.isnan(std) else f"\n±{std:.{0 if std >= 9.95 else 1}f}"
    return f"{mean:.1f}{'*' if short else ''}{spread}"


def _row_names(board: Board, places: Sequence[int]) -> list[str]:
    """Dataset and size of bags; of further sizes of a dataset the size alone."""
    columns = [board.columns[place] for place in places]
    first = [not n or column.dataset != columns[n - 1].dataset for n, column in enumerate(columns)]
    return [
        f"{layout.shown(column.dataset, 20)}  {column.bags}" if is_first else column.bags
        for column, is_first in zip(columns, first, strict=True)
    ]

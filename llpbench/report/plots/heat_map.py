"""Heat map: the mean of each ranked row in each column of a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import seaborn
from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import WIDTH

MOST_METHODS = 8

MOST_COLUMNS = 36
"""Columns of the board; each is a row of the figure."""

COLOURS = "YlGnBu"
"""Colour map whose grey value is monotonic, too."""

CHANCE = 50.0


def heat_map(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a row for each column of the board, and a column for each method."""
    rows, places = board.ranked[:MOST_METHODS], [*range(len(board.columns))][:MOST_COLUMNS]
    if not rows:
        return
    values = board.values()[rows].groupby(level=0)
    means, stds = values.mean().reindex(places), values.std().reindex(places)
    leads = sum((rows[0], place) in board.leaders for place in board.counting_columns)
    facts = {"first": layout.labels(board)[rows[0]], "leads": leads, "of": len(board.counting_columns)}
    left = len(board.ranked) - len(rows)
    yield layout.of_board(board, name, "heat-map", _figure(board, means, stds), left=left, **facts)


def _figure(board: Board, means: DataFrame, stds: DataFrame) -> Figure:
    names = layout.labels(board, means, 26)
    figure = Figure(figsize=(WIDTH, 1.2 + 0.19 * len(means)))
    ax = figure.subplots()
    better = board.sign * means
    low = better.min(axis="columns").clip(lower=CHANCE if board.metric.name == HEADLINE else None)
    span = better.max(axis="columns") - low
    shades = better.sub(low, axis="index").div(span.where(span > 0, 1.0), axis="index").clip(0, 1)
    texts = [[_text(board, row, place, means, stds) for row in means] for place in means.index]
    seaborn.heatmap(
        shades, cmap=COLOURS, vmin=-0.1, vmax=1.25, annot=np.array(texts), fmt="", cbar=False, linewidths=0.8, ax=ax
    )
    for text in ax.texts:
        text.set_in_layout(False)  # faster: the layout need not measure hundreds of texts
    ax.set(xlabel="", ylabel="")
    ax.set_xticks(np.arange(len(names)) + 0.5, [*names.values()], rotation=40, ha="left")
    ax.set_yticks(np.arange(len(means)) + 0.5, _row_names(board, [*means.index]), rotation=0)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return figure


def _text(board: Board, row: int, place: int, means: DataFrame, stds: DataFrame) -> str:
    """Return mean and standard deviation over seeds, with a star if a seed is missing."""
    mean, std, score = means.at[place, row], stds.at[place, row], board.rows[row].scores[place]
    if np.isnan(mean):
        return words.NOTHING
    spread = "" if np.isnan(std) else f" ±{std:.{0 if std >= 9.95 else 1}f}"
    return f"{mean:.1f}{'*' if len(score.values) < score.expected else ''}{spread}"


def _row_names(board: Board, places: Sequence[int]) -> list[str]:
    """Return dataset and bag size; further sizes of a dataset alone."""
    columns = [board.columns[place] for place in places]
    is_first = [not n or column.dataset != columns[n - 1].dataset for n, column in enumerate(columns)]
    return [
        f"{layout.shown(column.dataset, 20)}  {column.bags}" if first else column.bags
        for column, first in zip(columns, is_first, strict=True)
    ]

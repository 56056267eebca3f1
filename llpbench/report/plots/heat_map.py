"""Every mean of a leaderboard at one glance."""

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
"""what leaves room for the numbers"""

MOST_COLUMNS = 36
"""largest number of leaderboard columns; each is a row here"""

COLOURS = "YlGnBu"
"""ever darker in grey"""

CHANCE = 50.0


def heat_map(board: Board, name: str) -> Iterator[Drawing]:
    """Mean of each ranked row in each column: a row a column of the board, methods side by side."""
    rows, places = board.ranked[:MOST_METHODS], [*range(len(board.columns))][:MOST_COLUMNS]
    if not rows:
        return
    values = board.values()[rows].groupby(level=0)
    means, stds = (each.reindex(places) for each in (values.mean(), values.std()))
    leads = sum((rows[0], place) in board.leaders for place in board.counting_columns)
    facts = {"first": layout.labels(board)[rows[0]], "leads": leads, "of": len(board.counting_columns)}
    figure, left = _figure(board, means, stds), len(board.ranked) - len(rows)
    yield layout.of_board(board, name, "heat-map", figure, left=left, **facts)


def _figure(board: Board, means: DataFrame, stds: DataFrame) -> Figure:
    names = layout.labels(board, means, 26)
    figure = Figure(figsize=(WIDTH, 1.2 + 0.19 * len(means)))
    ax = figure.subplots()
    better = board.sign * means
    low = better.min(axis="columns").clip(lower=CHANCE if board.metric.name == HEADLINE else None)
    span = better.max(axis="columns") - low
    shares = better.sub(low, axis="index").div(span.where(span > 0, 1.0), axis="index").clip(0, 1)
    short = [
        [len(board.rows[row].scores[place].values) < board.rows[row].scores[place].expected for row in means]
        for place in means.index
    ]
    texts = [
        [_text(*each) for each in zip(*own, strict=True)]
        for own in zip(means.to_numpy(), stds.to_numpy(), short, strict=True)
    ]
    seaborn.heatmap(
        shares, cmap=COLOURS, vmin=-0.1, vmax=1.25, annot=np.array(texts), fmt="", cbar=False, linewidths=0.8, ax=ax
    )
    for text in ax.texts:
        text.set_in_layout(False)  # hundreds of texts would be measured for nothing
    ax.set(xlabel="", ylabel="")
    ax.set_xticks(np.arange(len(names)) + 0.5, [*names.values()], rotation=40, ha="left")
    ax.set_yticks(np.arange(len(means)) + 0.5, _row_names(board, [*means.index]), rotation=0)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return figure


def _text(mean: float, std: float, short: bool) -> str:
    """Mean and spread over seeds, with a mark where seeds lack."""
    if np.isnan(mean):
        return words.NOTHING
    spread = "" if np.isnan(std) else f" ±{std:.{0 if std >= 9.95 else 1}f}"
    return f"{mean:.1f}{'*' if short else ''}{spread}"


def _row_names(board: Board, places: Sequence[int]) -> list[str]:
    """Dataset and size of bags; of further sizes of a dataset the size alone."""
    columns = [board.columns[place] for place in places]
    first = [not n or column.dataset != columns[n - 1].dataset for n, column in enumerate(columns)]
    return [
        f"{layout.shown(column.dataset, 20)}  {column.bags}" if is_first else column.bags
        for column, is_first in zip(columns, first, strict=True)
    ]

"""Heat map: the mean of each ranked entry on each task of a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import seaborn
from matplotlib import rcParams
from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import WIDTH

MOST_METHODS = 8

MOST_TASKS = 36
"""Tasks of the board; each is a row of the figure."""

COLOURS = "YlGnBu"
"""Colour map whose grey value is monotonic, too."""

CHANCE = 50.0


def heat_map(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a row for each task that counts, and a column for each of the first methods and of those best on a task."""
    tasks = board.counting_tasks[:MOST_TASKS]
    if not board.ranked or not tasks:
        return
    best = (board.sign * board.task_means.loc[tasks, board.learners]).dropna(how="all")
    winners = {*best.idxmax(axis="columns")}
    others = [entry for entry in board.ranked if entry not in winners][: max(MOST_METHODS - len(winners), 0)]
    entries = sorted({board.ranked[0], *winners, *others})
    values = board.counted()[entries].groupby(level=0)
    means, stds = values.mean().reindex(tasks), values.std().reindex(tasks)
    leads = sum((entries[0], task) in board.leaders for task in board.counting_tasks)
    facts = {"first": layout.labels(board)[entries[0]], "leads": leads, "of": len(board.counting_tasks)}
    left = len(board.ranked) - len(entries)
    yield layout.of_board(board, name, "heat-map", _figure(board, means, stds), left=left, **facts)


def _figure(board: Board, means: DataFrame, stds: DataFrame) -> Figure:
    names = layout.labels(board, means, 26)
    figure = Figure(figsize=(WIDTH, 1.2 + 0.19 * len(means)))
    ax = figure.subplots()
    better = board.sign * means
    low = better.min(axis="columns").clip(lower=CHANCE if board.metric.name == HEADLINE else None)
    span = better.max(axis="columns") - low
    shades = better.sub(low, axis="index").div(span.where(span > 0, 1.0), axis="index").clip(0, 1)
    texts = [[_text(board, entry, task, means, stds) for entry in means] for task in means.index]
    size = rcParams["font.size"] * min(1.0, MOST_METHODS / len(names))
    seaborn.heatmap(
        shades,
        cmap=COLOURS,
        vmin=-0.1,
        vmax=1.25,
        annot=np.array(texts),
        annot_kws={"size": size},
        fmt="",
        cbar=False,
        linewidths=0.8,
        ax=ax,
    )
    for text in ax.texts:
        text.set_in_layout(False)  # faster: the layout need not measure hundreds of texts
    ax.set(xlabel="", ylabel="")
    ax.set_xticks(np.arange(len(names)) + 0.5, [*names.values()], rotation=40, ha="left")
    ax.set_yticks(np.arange(len(means)) + 0.5, _task_names(board, [*means.index]), rotation=0)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return figure


def _text(board: Board, entry: int, task: int, means: DataFrame, stds: DataFrame) -> str:
    """Return mean and standard deviation over seeds, with a star if a seed that counts is missing."""
    mean, std, is_complete = means.at[task, entry], stds.at[task, entry], board.task_means.at[task, entry]
    if np.isnan(mean):
        return words.NOTHING
    spread = "" if np.isnan(std) else f" ±{std:.{0 if std >= 9.95 else 1}f}"
    return f"{mean:.1f}{'*' if np.isnan(is_complete) else ''}{spread}"


def _task_names(board: Board, tasks: Sequence[int]) -> list[str]:
    """Return dataset and bag size; further sizes of a dataset alone."""
    shown = board.tasks.loc[tasks]
    is_first = shown["dataset"] != shown["dataset"].shift()
    return [
        f"{layout.shown(dataset, 20)}  {bags}" if first else bags
        for dataset, bags, first in zip(shown["dataset"], shown["bags"], is_first, strict=True)
    ]

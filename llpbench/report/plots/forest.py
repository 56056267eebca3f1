"""Differences with their intervals.

The leader minus each other method, and each entry with pretraining minus the same entry without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import fsum
from statistics import median

import numpy as np
from matplotlib.figure import Figure
from pandas import Series

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import blocks, differing
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing

MOST_ENTRIES = 20

CLEAR, OPEN = "#1c5490", "0.55"
"""Colours of differences that are significant after correction, and of others."""

Ends = tuple[float, float] | None
Difference = tuple[float, Ends]
"""Mean and interval."""


def differences(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the first entry minus each other ranked entry, over datasets (or seeds of a single dataset)."""
    if len(board.ranked) < 2:
        return
    leader, *others = board.ranked[: MOST_ENTRIES + 1]
    independent, significant = blocks(board, board.ranked), differing(board)
    gains = {entry: _difference([*(independent[leader] - independent[entry])]) for entry in others}
    first = layout.labels(board)[leader]
    unit = "points" if board.metric.percent else "units"
    label = f"{unit} of {board.metric.title} by which {first.strip()} is ahead"
    figure = _figure(board, gains, significant or [], label)
    facts = {
        "first": first,
        "number": len(board.ranked) - 1,
        "clear": None if significant is None else len(significant),
        "over": _over(len(board.datasets)),
        "hidden": len(board.ranked) - 1 - len(others),
    }
    yield layout.of_board(board, name, "differences", figure, **facts)


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """Draw each entry with pretraining minus the same entry without, over datasets (or seeds of a single dataset)."""
    others = zip(*(board.entries[name] for name in ("method", "encoder", "configuration", "is_tuned")), strict=True)
    names = [*zip(others, board.entries["pretraining"], strict=True)]
    plain = {name: entry for entry, (name, pretraining) in enumerate(names) if pretraining == "none"}
    datasets = board.tasks["dataset"].nunique()
    values = board.sign * board.values()
    paired = {
        entry: pairs
        for entry, (name, pretraining) in enumerate(names)
        if pretraining != "none"
        and name in plain
        and (pairs := _gains(board, values[entry] - values[plain[name]], datasets > 1))
    }
    gains = {entry: _difference(pairs) for entry, pairs in [*paired.items()][:MOST_ENTRIES]}
    if not gains:
        return
    p = {entry: each for entry in gains if (each := statistics.difference_p(paired[entry])) == each}
    corrected = zip(p, statistics.holm(np.array([*p.values()])), strict=True)
    significant = [entry for entry, each in corrected if each < 1 - statistics.CONFIDENCE]
    figure = _figure(board, gains, significant, "points that pretraining adds")
    middle = median(mean for mean, _ in gains.values())
    facts = {"number": len(gains), "clear": len(significant), "middle": middle, "over": _over(datasets)}
    yield layout.of_board(board, name, "pretraining", figure, **facts)


def _over(datasets: int) -> str:
    return "datasets" if datasets > 1 else "seeds"


def _gains(board: Board, differences: Series, by_dataset: bool) -> list[float]:
    """Return means of the differences that are not NaN, by dataset or by seed."""
    known = differences.dropna()
    tasks, seeds = (known.index.get_level_values(level) for level in (0, 1))
    keys = board.of_task(tasks) if by_dataset else [*seeds]
    return [*known.groupby(keys, sort=False).mean()]


def _difference(values: Sequence[float]) -> Difference:
    return fsum(values) / len(values), statistics.interval(values) if len(values) >= statistics.FEWEST else None


def _figure(board: Board, gains: Mapping[int, Difference], significant: Collection[int], label: str) -> Figure:
    """Draw a line for each entry: the mean, its interval, and both as text on the right; `significant` ones in blue."""
    names = layout.labels(board)
    figure, ax = layout.named_lines([names[entry] for entry in gains])
    for place, (entry, (mean, ends)) in enumerate(gains.items()):
        colour = CLEAR if entry in significant else OPEN
        if ends is not None:
            ax.plot(ends, [place, place], color=colour, linewidth=1.6, zorder=2)
        ax.plot([mean], [place], "o", color=colour, markersize=5.5, zorder=3)
        text = words.interval_text(mean, ends, sign="+").replace("-", "−")
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.3", linewidth=0.8, zorder=1)
    ax.set_xlabel(label)
    return figure

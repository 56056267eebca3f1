"""Spread of the proportions of the positive class over bags."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum, sqrt
from statistics import fmean
from typing import Any

from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Column, ColumnKey, Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import method_style

MOST_PANELS = 3
"""what shows how kinds of bags differ"""

USUAL_SIZE = 256
"""the bag size that is drawn where there are several"""

_COLOURS = {"ordered": "#0072b2", "random": "#d55e00"}

Place = tuple[ColumnKey, str]
"""a column, and its bagging"""


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """A panel for each bagging, of the dataset with most baggings, at one bag size."""
    bags, found = _bags(leaderboards), shares(leaderboards)
    drawn = _chosen(found)
    if not drawn:
        return
    columns = {(column.key, board.bagging): column for board in leaderboards.boards for column in board.columns}
    figure, axes = layout.panels(len(drawn), across=MOST_PANELS, height=2.2, below=0.2, share_y=True)
    spreads = []
    for ax, place in zip(axes, drawn, strict=True):
        values, bagging = found[place], place[1]
        edges = [n / len(values) for n in range(len(values) + 1)]
        colour = _COLOURS.get(bagging) or method_style(bagging).colour
        percent = [100 * value for value in values]
        ax.stairs(percent, edges, fill=True, facecolor=(colour, 0.25), edgecolor=colour, linewidth=1.2)
        mean = _mean(values)
        ax.axvline(mean, color="black", linewidth=1, linestyle="--")
        ax.annotate(
            f"mean {mean:.2f}",
            (mean, 1),
            (4, 0),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            va="top",
        )
        column = columns[place]
        name = words.clean(f"bags {column.bags}" if column.by else words.bags_words(bagging))
        kind = textwrap.wrap(name, 32, max_lines=2, placeholder=" …")
        numbers = [each["number"] for each in bags[place].values() if each.get("number")]
        ax.set_title("\n".join([*kind, _sizes(column, numbers)]))
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        spreads.append((name, _spread(values)))
    axes[0].set_ylabel("% of bags")
    axes[0].set_ylim(0, 112 * max(max(found[place]) for place in drawn))  # of all panels, which share it
    layout.label_below(axes, MOST_PANELS, "proportion of the positive class")
    dataset = words.clean(drawn[0][0][0])
    yield Drawing(
        kind="proportions",
        name="proportions",
        title=words.caption("title_proportions", spreads=spreads),
        setting=dataset,
        caption=words.caption("plot_proportions"),
        figure=figure,
    )


def _chosen(found: Mapping[Place, Sequence[float]]) -> list[Place]:
    """One bagging of each kind on one dataset, ordered and random bags first."""
    kinds: dict[str, dict[str, Place]] = defaultdict(dict)
    for place in sorted(
        found, key=lambda each: (each[0][0], each[0][1] != USUAL_SIZE, each[0][1], len(each[1]), each[1])
    ):
        kinds[place[0][0]].setdefault(place[1].partition(":")[0], place)
    most = max(kinds.values(), key=len, default={})
    order = [*_COLOURS, NATURAL]
    chosen = sorted(most, key=lambda kind: (order.index(kind) if kind in order else len(order), kind))
    return [most[kind] for kind in chosen[:MOST_PANELS]]


def _sizes(column: Column, numbers: Sequence[int]) -> str:
    """The rows of a bag, and how many bags there are."""
    counted = f", {plural(round(fmean(numbers)), 'bag')}" if numbers else ""
    if column.unequal and column.sizes is not None:
        return f"{column.sizes[0]:,} to {column.sizes[2]:,} rows{counted}"
    rows = column.sizes[0] if column.sizes else column.bag_size
    return f"{rows:,} rows{counted}" if rows else f"unknown sizes{counted}"


def _bags(leaderboards: Leaderboards) -> Mapping[Place, dict[int, Mapping[str, Any]]]:
    """Facts about bags by column and seed: all runs of a seed have the same bags."""
    found: dict[Place, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for board in leaderboards.boards:
        for row in board.rows:
            for column, score in zip(board.columns, row.scores, strict=True):
                for seed, run in score.runs.items():
                    if run["bags"]:
                        found[column.key, board.bagging].setdefault(seed, run["bags"])
    return found


def shares(leaderboards: Leaderboards) -> dict[Place, Sequence[float]]:
    """Mean histograms of the last class: the share of bags in each bin, mean over seeds."""
    found: dict[Place, Sequence[float]] = {}
    for place, by_seed in _bags(leaderboards).items():
        counts = [each["histograms"][-1] for _, each in sorted(by_seed.items()) if each.get("histograms")]
        if parts := [[count / sum(own) for count in own] for own in counts if sum(own)]:
            found[place] = [fmean(values) for values in zip(*parts, strict=True)]
    return found


def _mean(values: Sequence[float]) -> float:
    """Mean of a histogram with equal bins from 0 to 1, each at its middle."""
    return fsum(value * (place + 0.5) / len(values) for place, value in enumerate(values)) / fsum(values)


def _spread(values: Sequence[float]) -> float:
    """Standard deviation of the same histogram."""
    mean = _mean(values)
    return sqrt(fsum(v * ((n + 0.5) / len(values) - mean) ** 2 for n, v in enumerate(values)) / fsum(values))

"""What bags are like: how their proportions of the positive class are spread."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Column, ColumnKey, Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import method_style

MOST_PANELS = 3
"""what shows how kinds of bags differ"""

USUAL_SIZE = 256
"""the bag size that is drawn where there are several"""

_COLOURS = {"ordered": "#0072b2", "random": "#d55e00"}

Shares = Mapping[str, Sequence[float]]
"""by bagging: the share of bags in each bin, mean over seeds"""


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """What baggings do: a panel for each, of the dataset that has most kinds of them, at one bag size."""
    found, bags = shares(leaderboards), _bags(leaderboards)
    drawn = _chosen(found)
    if not drawn:
        return
    columns = {(column.key, board.bagging): column for board in leaderboards.boards for column in board.columns}
    dataset = drawn[0][0][0]
    figure, axes = layout.panels(len(drawn), across=MOST_PANELS, height=2.3, below=0.2, share_y=True)
    for ax, (place, bagging) in zip(axes, drawn, strict=True):
        _panel(ax, bagging, found[place][bagging], _prior(dataset, found, columns.values()))
        numbers = [each["number"] for each in bags[place, bagging].values() if each.get("number")]
        kind = textwrap.wrap(words.clean(words.bags_words(bagging)), 32, max_lines=3, placeholder=" …")
        ax.set_title("\n".join([*kind, *_sizes(columns[place, bagging], numbers)]))
    axes[0].set_ylabel("% of bags")
    # of all panels, which share it
    axes[0].set_ylim(0, 108 * max(max(found[place][bagging]) for place, bagging in drawn))
    layout.label_below(axes, MOST_PANELS, "positive proportion")
    baggings = {bagging for _, bagging in drawn}
    about = About(
        kind="proportions",
        name="proportions",
        title=f"Class proportions of bags: {words.clean(dataset)}",
        caption=layout.sentences(words.caption("plot_proportions"), words.sizes_text([*columns.values()])),
        bagging=baggings.pop() if len(baggings) == 1 else None,
    )
    yield Drawing(about, figure)


def _chosen(found: Mapping[ColumnKey, Shares]) -> list[tuple[ColumnKey, str]]:
    """One bagging of each kind on one dataset, ordered and random bags first."""
    kinds: dict[str, dict[str, tuple[ColumnKey, str]]] = defaultdict(dict)
    for place in sorted(found, key=lambda place: (place[0], place[1] != USUAL_SIZE, place[1])):
        for bagging in sorted(found[place], key=lambda bagging: (len(bagging), bagging)):
            kinds[place[0]].setdefault(bagging.partition(":")[0], (place, bagging))
    most = max(kinds.values(), key=len, default={})
    order = [*_COLOURS, "column"]
    chosen = sorted(most, key=lambda kind: (order.index(kind) if kind in order else len(order), kind))
    return [most[kind] for kind in chosen[:MOST_PANELS]]


def _sizes(column: Column, numbers: Sequence[int]) -> list[str]:
    """The rows of a bag, and how many bags there are, on lines that a panel has room for."""
    told = [plural(round(fmean(numbers)), "bag")] if numbers else []
    if column.unequal and column.sizes is not None:
        least, median, most = column.sizes
        return [f"{least:,} to {most:,} rows,", ", ".join([f"median {median:,.6g}", *told])]
    return [", ".join([f"{column.bags} rows", *told])]


def _bags(leaderboards: Leaderboards) -> Mapping[tuple[ColumnKey, str], dict[int, Mapping[str, Any]]]:
    """By column and bagging, what its runs know of their bags, by seed: every run of a seed has the same."""
    found: dict[tuple[ColumnKey, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for board in leaderboards.boards:
        for row in board.rows:
            for column, score in zip(board.columns, row.scores, strict=True):
                for seed, run in score.runs.items():
                    if run["bags"]:
                        found[column.key, board.bagging].setdefault(seed, run["bags"])
    return found


def shares(leaderboards: Leaderboards) -> dict[ColumnKey, Shares]:
    """Mean histograms of the last class."""
    found: dict[ColumnKey, dict[str, Sequence[float]]] = defaultdict(dict)
    for (place, bagging), by_seed in _bags(leaderboards).items():
        counts = [each["histograms"][-1] for _, each in sorted(by_seed.items()) if each.get("histograms")]
        parts = [[count / sum(own) for count in own] for own in counts if sum(own)]
        if parts:
            found[place][bagging] = [fmean(values) for values in zip(*parts, strict=True)]
    return dict(found)


def _prior(dataset: str, found: Mapping[ColumnKey, Shares], columns: Iterable[Column]) -> float | None:
    """The class prior of a dataset that has bags of one size: the mean proportion of the largest."""
    equal = [each.key for each in columns if each.dataset == dataset and each.sizes is not None and not each.unequal]
    known = [key for key in equal if key in found]
    return fmean(map(_mean, found[max(known)].values())) if known else None


def _mean(values: Sequence[float]) -> float:
    """Of what lies in equal bins from 0 to 1, each taken at its middle."""
    return fsum(value * (place + 0.5) / len(values) for place, value in enumerate(values)) / fsum(values)


def _panel(ax: Axes, bagging: str, values: Sequence[float], prior: float | None) -> None:
    edges = [place / len(values) for place in range(len(values) + 1)]
    colour = _COLOURS.get(bagging) or method_style(bagging).colour
    percent = [100 * value for value in values]
    ax.stairs(percent, edges, fill=True, facecolor=(colour, 0.25), edgecolor=colour, linewidth=1.2)
    at, what, line = (_mean(values), "mean", ":") if prior is None else (prior, "prior", "--")
    ax.axvline(at, color="black", linewidth=1, linestyle=line)
    ax.annotate(
        f"{what} {at:.2f}",
        (at, 1),
        (4 if at < 0.55 else -4, 0),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        ha="left" if at < 0.55 else "right",
        va="top",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
    )
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])

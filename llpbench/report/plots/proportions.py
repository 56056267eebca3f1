"""Histograms of the proportion of the positive class in training bags."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llpbench.core.bags import FloatArray
from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.layout import LOOKS, Drawing

_MOST_PANELS = 4

_PREFERRED_SIZE = 256
"""Bag size that is drawn if there are several."""

_FIRST = ("ordered", "random", NATURAL)
"""Baggings that are drawn first."""

_Place = tuple[str, int | None, str, str]
"""Dataset, bag size, natural key and bagging."""


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Draw a panel for each bagging of the dataset with most baggings, at one bag size."""
    places = _places(leaderboards)
    found = {place: _mean_histogram(bags) for place, (_, bags) in places.items()}
    histograms = {place: shares for place, shares in found.items() if shares is not None}
    drawn = _chosen_places(histograms)
    if not drawn:
        return
    panels = layout.panels(len(drawn), height=2.2, below=0.2, share_y=True)
    spreads = []
    for ax, place, (colour, _) in zip(panels.axes, drawn, LOOKS, strict=False):
        shares, bagging, (task, bags) = histograms[place], place[-1], places[place]
        edges = np.linspace(0, 1, len(shares) + 1)
        ax.stairs(100 * shares, edges, fill=True, facecolor=(colour, 0.25), edgecolor=colour, linewidth=1.2)
        mean, std = _moments(shares)
        ax.axvline(mean, color="black", linewidth=1, linestyle="--")
        at_top: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "va": "top"}
        ax.annotate(f"mean {mean:.2f}", (mean, 1), (4, 0), **at_top)
        name = words.clean(f"bags {task.bags}" if task.by else words.bags_words(bagging))
        lines = textwrap.wrap(name, 30, max_lines=2, placeholder=" …")
        ax.set_title("\n".join([*lines, _size_text(task, bags)]))
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        spreads.append((name, std))
    panels.axes[0].set_ylim(0, 112 * max(histograms[place].max() for place in drawn))
    panels.label("proportion of the positive class", "% of bags")
    yield Drawing(
        kind="proportions",
        name="proportions",
        title=words.caption("title_proportions", spreads=spreads),
        setting=words.clean(drawn[0][0]),
        caption=words.caption("plot_proportions"),
        figure=panels.figure,
    )


def _chosen_places(places: Iterable[_Place]) -> list[_Place]:
    """Return one bagging of each kind on one dataset, ordered and random bags first."""

    def order(place: _Place) -> tuple[Any, ...]:
        dataset, size, _, bagging = place
        return dataset, size != _PREFERRED_SIZE, size or 0, len(bagging), bagging

    kinds: dict[str, dict[str, _Place]] = defaultdict(dict)
    for place in sorted(places, key=order):
        kinds[place[0]].setdefault(place[-1].partition(":")[0], place)
    most = max(kinds.values(), key=len, default={})
    chosen = sorted(most, key=lambda kind: (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), kind))
    return [most[kind] for kind in chosen[:_MOST_PANELS]]


def _size_text(task: Any, bags: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a bag, and the mean number of bags."""
    numbers = [facts["number"] for facts in bags if facts.get("number")]
    counted = f", {plural(round(float(np.mean(numbers))), 'bag')}" if numbers else ""
    if task.is_unequal:
        return f"{task.least_rows:,} to {task.most_rows:,} rows{counted}"
    rows = task.least_rows or task.bag_size
    return f"{rows:,} rows{counted}" if rows else f"unknown sizes{counted}"


def _places(leaderboards: Leaderboards) -> dict[_Place, tuple[Any, list[Mapping[str, Any]]]]:
    """Return each task with facts about its bags, one for each seed: all runs of a seed have the same bags."""
    tasks: dict[_Place, Any] = {}
    bags: dict[_Place, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for board in leaderboards.boards:
        of_board = [*board.tasks.itertuples()]
        for run, number, seed in zip(*(board.runs[name] for name in ("run", "task", "seed")), strict=True):
            task, facts = of_board[number], board.records[run]["bags"]
            place = task.dataset, task.bag_size, task.by, board.bagging
            tasks[place] = task
            if facts:
                bags[place].setdefault(seed, facts)
    return {place: (task, [facts for _, facts in sorted(bags[place].items())]) for place, task in tasks.items()}


def _mean_histogram(bags: Iterable[Mapping[str, Any]]) -> FloatArray | None:
    """Return the share of bags in each bin of the last class's proportion, mean over seeds; None if unknown."""
    counts = [facts["histograms"][-1] for facts in bags if facts.get("histograms")]
    shares = [np.array(bins) / sum(bins) for bins in counts if sum(bins)]
    return np.mean(shares, axis=0) if shares else None


def _moments(shares: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of a histogram from 0 to 1, with values in the middle of its bins."""
    middles = (np.arange(len(shares)) + 0.5) / len(shares)
    mean = float(np.average(middles, weights=shares))
    return mean, float(np.sqrt(np.average((middles - mean) ** 2, weights=shares)))

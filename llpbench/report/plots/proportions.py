"""What bags are like: how their proportions of the positive class are spread."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from statistics import fmean

from matplotlib.axes import Axes

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Column, ColumnKey, Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import method_style

Shares = Mapping[str, Sequence[float]]
"""by bagging: the share of bags in each bin, mean over seeds"""

MOST_PANELS = 3
"""what shows how kinds of bags differ"""

USUAL_SIZE = 256
"""the bag size that is drawn where there are several"""

_COLOURS = {"ordered": "#0072b2", "random": "#d55e00"}


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """What baggings do: a panel for each, of the dataset that has most kinds of them, at one bag size."""
    found, numbers = shares(leaderboards), _numbers(leaderboards)
    drawn = _chosen(found)
    if not drawn:
        return
    columns = [column for board in leaderboards.boards for column in board.columns]
    known = priors(found, columns)
    dataset = drawn[0][0][0]
    figure, axes = layout.panels(len(drawn), across=MOST_PANELS, height=2.3, below=0.2, share_y=True)
    for ax, (place, bagging) in zip(axes, drawn, strict=True):
        _panel(ax, bagging, found[place][bagging], known.get(dataset))
        own = next(c for b in leaderboards.boards if b.bagging == bagging for c in b.columns if c.key == place)
        bags = round(fmean(numbers[place, bagging])) if numbers.get((place, bagging)) else None
        told = [] if bags is None else [plural(bags, "bag")]
        kind = textwrap.wrap(words.clean(words.bags_words(bagging)), 32, max_lines=3, placeholder=" …")
        ax.set_title("\n".join([*kind, *_sizes(own, told)]))
    axes[0].set_ylabel("% of bags")
    most = max(100 * max(found[place][bagging]) for place, bagging in drawn)
    axes[0].set_ylim(0, 1.08 * most)  # of all panels, which share it
    layout.label_below(axes, MOST_PANELS, "positive proportion")
    baggings = list(dict.fromkeys(bagging for _, bagging in drawn))
    about = About(
        kind="proportions",
        name="proportions",
        title=f"Class proportions of bags: {words.clean(dataset)}",
        caption=layout.sentences(
            "Proportions of the positive class (of several classes: the last) in training bags: percent of bags in "
            "each bin, mean over seeds. Dashed: the class prior, which is the mean proportion of the largest bags of "
            "one size; dotted, where there are none: the mean over these bags. Bags whose proportions are close to "
            "one value say little about rows.",
            words.sizes_text(columns),
        ),
        bagging=baggings[0] if len(baggings) == 1 else None,
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


def _sizes(column: Column, told: Sequence[str]) -> list[str]:
    """The rows of a bag, and what is told of how many there are, on lines that a panel has room for."""
    if column.unequal and column.sizes is not None:
        least, median, most = column.sizes
        return [f"{least:,} to {most:,} rows,", ", ".join([f"median {median:,.6g}", *told])]
    return [", ".join([f"{column.bags} rows", *told])]


def _numbers(leaderboards: Leaderboards) -> Mapping[tuple[ColumnKey, str], list[int]]:
    """How many training bags there are, of each seed."""
    found: dict[tuple[ColumnKey, str], dict[int, int]] = defaultdict(dict)
    for board in leaderboards.boards:
        for row in board.rows:
            for column, score in zip(board.columns, row.scores, strict=True):
                known = {seed: run["bags"].get("number") for seed, run in score.runs.items()}
                found[column.key, board.bagging].update({seed: number for seed, number in known.items() if number})
    return {place: [*by_seed.values()] for place, by_seed in found.items()}


def shares(leaderboards: Leaderboards) -> dict[ColumnKey, Shares]:
    """Mean histograms of the last class; every run of one dataset, bagging, bag size and seed has the same bags."""
    histograms: dict[tuple[ColumnKey, str], dict[int, Sequence[int]]] = defaultdict(dict)
    for board in leaderboards.boards:
        for row in board.rows:
            for column, score in zip(board.columns, row.scores, strict=True):
                for seed, run in score.runs.items():
                    counts = run["bags"].get("histograms")
                    if counts and sum(counts[-1]):
                        histograms[column.key, board.bagging].setdefault(seed, counts[-1])
    found: dict[ColumnKey, dict[str, Sequence[float]]] = defaultdict(dict)
    for (place, bagging), by_seed in histograms.items():
        each = [[count / sum(counts) for count in counts] for _, counts in sorted(by_seed.items())]
        found[place][bagging] = [fsum(values) / len(values) for values in zip(*each, strict=True)]
    return dict(found)


def priors(found: Mapping[ColumnKey, Shares], columns: Iterable[Column]) -> dict[str, float]:
    """The class prior of each dataset that has bags of one size: the mean proportion of the largest."""
    equal = {column.key for column in columns if column.sizes is not None and not column.unequal}
    largest = {place[0]: place for place in sorted(equal & found.keys())}
    return {
        dataset: fmean(_mean(values) for values in found[place].values()) for dataset, place in sorted(largest.items())
    }


def _mean(values: Sequence[float]) -> float:
    """Of what lies in equal bins from 0 to 1, each taken at its middle."""
    return fsum(value * (place + 0.5) / len(values) for place, value in enumerate(values)) / fsum(values)


def _panel(ax: Axes, bagging: str, values: Sequence[float], prior: float | None) -> None:
    edges = [place / len(values) for place in range(len(values) + 1)]
    percent, colour = [100 * value for value in values], _colour(bagging)
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


def _colour(bagging: str) -> str:
    return _COLOURS.get(bagging) or method_style(bagging).colour

"""What bags are like: how their proportions of the positive class are spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from statistics import fmean

from matplotlib.axes import Axes

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import ColumnKey, Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import method_style

Shares = Mapping[str, Sequence[float]]
"""by bagging: the share of bags in each bin, mean over seeds"""

MOST_PANELS = 24

_COLOURS = {"ordered": "#0072b2", "random": "#d55e00"}


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """A panel for each dataset, bag size and bagging, those of one dataset and size beside one another."""
    found, numbers = shares(leaderboards), _numbers(leaderboards)
    if not found:
        return
    every = [(place, bagging) for place in sorted(found) for bagging in sorted(found[place])]
    drawn = every[:MOST_PANELS]
    columns = [column for board in leaderboards.boards for column in board.columns]
    across = min(4, layout.balanced(len(drawn), 4))
    figure, axes = layout.panels(len(drawn), across=across, height=1.6, below=0.2, share_y=True)
    for number, (ax, (place, bagging)) in enumerate(zip(axes, drawn, strict=True)):
        _panel(ax, bagging, found[place][bagging])
        sizes = [c.bags for b in leaderboards.boards if b.bagging == bagging for c in b.columns if c.key == place]
        bags = round(fmean(numbers[place, bagging])) if numbers.get((place, bagging)) else None
        told = "" if bags is None else f", {plural(bags, 'bag')}"
        ax.set_title(f"{layout.shown(place[0], 12)}, {sizes[0]}\n{layout.shown(bagging, 12)}{told}")
        if number % across == 0:
            ax.set_ylabel("% of bags")
    layout.label_below(axes, across, "positive proportion")
    baggings = list(dict.fromkeys(bagging for _, bagging in drawn))
    yield Drawing(
        About(
            kind="proportions",
            name="proportions",
            title="Class proportions of bags",
            caption=layout.sentences(
                "Proportions of the positive class (of several classes: the last) in the bags of the training split, "
                "by dataset, bag size and bagging, on one scale: percent of bags in each bin, mean over seeds. Dotted: "
                "their mean, which for bags of one size is the share of the class. The closer to one value, the "
                "less do "
                "bags tell apart.",
                f"The first {len(drawn)} of {len(every)} panels." if len(drawn) < len(every) else "",
                f"Baggings: {', '.join(map(words.clean, baggings))}."
                if any(len(each) > 12 for each in baggings)
                else "",
                words.sizes_text(columns),
            ),
            bagging=baggings[0] if len(baggings) == 1 else None,
        ),
        figure,
    )


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


def _panel(ax: Axes, bagging: str, values: Sequence[float]) -> None:
    edges = [place / len(values) for place in range(len(values) + 1)]
    percent, colour = [100 * value for value in values], _colour(bagging)
    ax.stairs(percent, edges, fill=True, facecolor=(colour, 0.25), edgecolor=colour, linewidth=1.2)
    mean = fsum(value * (edge + 0.5 / len(values)) for value, edge in zip(values, edges, strict=False)) / fsum(values)
    ax.axvline(mean, color="black", linewidth=1, linestyle=":")
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    ax.set_ylim(bottom=0)


def _colour(bagging: str) -> str:
    return _COLOURS.get(bagging) or method_style(bagging).colour

"""What bags are like: how their proportions of the positive class are spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from matplotlib.axes import Axes
from matplotlib.patches import Patch

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
    """A panel for each dataset and bag size, the baggings on top of one another."""
    found = shares(leaderboards)
    if not found:
        return
    places = sorted(found)[:MOST_PANELS]
    columns = [column for board in leaderboards.boards for column in board.columns]
    sizes = {place: " and ".join(dict.fromkeys(c.bags for c in columns if c.key == place)) for place in places}
    baggings = sorted({bagging for place in places for bagging in found[place]})
    different = len({size for _, size in places})
    full = len(places) == different * len({dataset for dataset, _ in places})
    across = different if full and different <= 4 else 4
    legend = [
        Patch(facecolor=(_colour(bagging), 0.25), edgecolor=_colour(bagging), label=f"{layout.shown(bagging)} bags")
        for bagging in baggings
    ]
    figure, axes = layout.panels(len(places), across=across, height=1.35, below=0.5)
    for number, (ax, place) in enumerate(zip(axes, places, strict=True)):
        _panel(ax, found[place])
        ax.set_title(f"{layout.shown(place[0], 18)}, {sizes[place]}")
        if number % across == 0:
            ax.set_ylabel("% of bags")
    layout.label_below(axes, across, "proportion of the positive class" if across < 4 else "positive proportion")
    figure.legend(handles=legend, loc="outside lower center", ncols=4)
    yield Drawing(
        About(
            kind="proportions",
            name="proportions",
            title="Class proportions of bags",
            caption=layout.sentences(
                "Proportions of the positive class (of several classes: the last) in the bags of the training split, "
                "by dataset and bag size: percent of bags in each bin, mean over seeds. The closer to one value, the "
                "less do bags tell apart.",
                f"The first {len(places)} of {len(found)} pairs." if len(places) < len(found) else "",
                words.sizes_text(columns),
            ),
            bagging=baggings[0] if len(baggings) == 1 else None,
        ),
        figure,
    )


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


def _panel(ax: Axes, by_bagging: Shares) -> None:
    for bagging, values in sorted(by_bagging.items()):
        edges = [place / len(values) for place in range(len(values) + 1)]
        percent = [100 * value for value in values]
        colour, line = _colour(bagging), "--" if bagging == "random" else "-"
        ax.stairs(percent, edges, fill=True, facecolor=(colour, 0.25), edgecolor=colour, linewidth=1.2, linestyle=line)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    ax.set_ylim(bottom=0)


def _colour(bagging: str) -> str:
    return _COLOURS.get(bagging) or method_style(bagging).colour

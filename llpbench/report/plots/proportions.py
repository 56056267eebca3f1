"""What bags are like: how their proportions of the positive class are spread."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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

MOST_PANELS = 24
"""of a figure"""

MOST_FIGURES = 4

_COLOURS = {"ordered": "#0072b2", "random": "#d55e00"}


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """A panel for each dataset, bag size and bagging, those of one dataset and size beside one another; as many figures
    as that takes, at most `MOST_FIGURES`."""
    found, numbers = shares(leaderboards), _numbers(leaderboards)
    every = [(place, bagging) for place in sorted(found) for bagging in sorted(found[place])]
    parts = [every[start : start + MOST_PANELS] for start in range(0, len(every), MOST_PANELS)]
    for number, part in enumerate(parts[:MOST_FIGURES], start=1):
        datasets = ", ".join(dict.fromkeys(layout.shown(place[0]) for place, _ in part))
        which = f", {number} of {len(parts)}" if len(parts) > 1 else ""
        name = "proportions" if number == 1 else f"proportions-{number}"
        about = About(kind="proportions", name=name, title=f"Class proportions of bags{which}: {datasets}", caption="")
        yield _of_part(leaderboards, about, part, found, numbers, _left_out(every))


def _of_part(
    leaderboards: Leaderboards,
    about: About,
    drawn: Sequence[tuple[ColumnKey, str]],
    found: Mapping[ColumnKey, Shares],
    numbers: Mapping[tuple[ColumnKey, str], list[int]],
    left_out: str,
) -> Drawing:
    columns = [column for board in leaderboards.boards for column in board.columns]
    known = priors(found, columns)
    across = min(4, layout.balanced(len(drawn), 4))
    figure, axes = layout.panels(len(drawn), across=across, height=2.1, below=0.2, share_y=True)
    for number, (ax, (place, bagging)) in enumerate(zip(axes, drawn, strict=True)):
        _panel(ax, bagging, found[place][bagging], known.get(place[0]))
        own = next(c for b in leaderboards.boards if b.bagging == bagging for c in b.columns if c.key == place)
        bags = round(fmean(numbers[place, bagging])) if numbers.get((place, bagging)) else None
        told = [] if bags is None else [plural(bags, "bag")]
        kind = textwrap.wrap(words.clean(words.bags_words(bagging)), 24, max_lines=3, placeholder=" …")
        ax.set_title("\n".join([layout.shown(place[0], 22), *kind, *_sizes(own, told)]))
        if number % across == 0:
            ax.set_ylabel("% of bags")
    most = max(100 * max(found[place][bagging]) for place, bagging in drawn)
    axes[0].set_ylim(0, 1.08 * most)  # of all panels, which share it
    layout.label_below(axes, across, "positive proportion")
    baggings = list(dict.fromkeys(bagging for _, bagging in drawn))
    return Drawing(
        replace(
            about,
            caption=layout.sentences(
                "Proportions of the positive class (of several classes: the last) in the bags of the training split, "
                "by dataset, bag size and bagging, on one scale: percent of bags in each bin, mean over seeds. Dashed: "
                "the class prior, which is the mean proportion of the dataset's largest bags of one size; dotted, "
                "where it has none: the mean of these bags, each counting once, which need not be the prior. The "
                "closer to one value, the less do bags tell apart.",
                left_out,
                words.sizes_text(columns),
            ),
            bagging=baggings[0] if len(baggings) == 1 else None,
        ),
        figure,
    )


def _sizes(column: Column, told: Sequence[str]) -> list[str]:
    """The rows of a bag, and what is told of how many there are, on lines that a panel has room for."""
    if column.unequal and column.sizes is not None:
        least, median, most = column.sizes
        return [f"{least:,} to {most:,} rows,", ", ".join([f"median {median:,.6g}", *told])]
    return [", ".join([f"{column.bags} rows", *told])]


def _left_out(every: Sequence[tuple[ColumnKey, str]]) -> str:
    """How many panels have no room, and of which datasets, as a sentence; "" if all have."""
    rest = Counter(place[0] for place, _ in every[MOST_FIGURES * MOST_PANELS :])
    of = ", ".join(f"{number} of {words.clean(dataset)}" for dataset, number in rest.items())
    if not of:
        return ""
    room = MOST_FIGURES * MOST_PANELS
    return f"The first {room} of {len(every)} panels, by dataset, bag size and bagging; left out: {of}."


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

"""Differences between two rows, one line each: the leader against every other method, and pretraining against none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles

MOST_ROWS = 24

FEWEST = 3
"""values of an interval: a t interval of two is nine times their standard deviation"""

Pair = tuple[Row, Row]
"""with and without pretraining"""


def differences(board: Board, name: str) -> Iterator[Drawing]:
    """The first row minus each other ranked row: means over datasets with their 95 % intervals."""
    found = board.standings
    if len(found.ranked) < 2:
        return
    leader, *others = found.ranked[: MOST_ROWS + 1]
    blocks = statistics.blocks(found.frame())
    values = [list(blocks[leader.contender.label] - blocks[row.contender.label]) for row in others]
    styles, names = row_styles(others), layout.labels(board.rows)
    first = names[leader.contender].strip()
    over = _over(len(found.datasets))
    figure = _forest(
        [names[row.contender] for row in others],
        values,
        [styles[row.contender].colour for row in others],
        f"points of AUC by which {first} is ahead",
        over,
    )
    about = About(
        kind="differences",
        name=f"differences-{name}",
        title=f"How far {first} leads",
        caption=layout.sentences(
            f"Mean test AUC of {first} minus that of each other ranked method, with its 95 % t interval over {over}; "
            f"a pale dot is one of the {over}. An interval that includes 0 leaves open which of the two is better. "
            "Each interval stands by itself, without a correction for their number.",
            words.datasets_text(len(found.datasets)),
            layout.left_out(len(found.ranked) - 1 - len(others), "ranked method"),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """Each row with pretraining minus the same row without, where both have run."""
    pairs = _pairs(board)
    several = len({column.dataset for column in board.columns}) > 1
    found = [(one, values) for one, other in pairs if (values := _gains(board, one, other, several=several))]
    drawn = found[:MOST_ROWS]
    if not drawn:
        return
    names, styles = layout.labels(one for one, _ in drawn), row_styles(one for one, _ in drawn)
    over = _over(2 if several else 1)
    figure = _forest(
        [names[one.contender] for one, _ in drawn],
        [values for _, values in drawn],
        [styles[one.contender].colour for one, _ in drawn],
        "points of AUC that pretraining adds",
        over,
    )
    about = About(
        kind="pretraining",
        name=f"pretraining-{name}",
        title="With pretraining minus without",
        caption=layout.sentences(
            "Test AUC with pretraining minus that of the same method, split, bags and seed without, in points: the "
            f"mean over the {over} that both have run on (a pale dot each), with its 95 % t interval where there are "
            f"{FEWEST} or more. On the right of the line pretraining helps.",
            layout.left_out(len(found) - len(drawn), "further row"),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def _over(datasets: int) -> str:
    """What the values of a line are, which are taken to be independent."""
    return "datasets" if datasets > 1 else "seeds"


def _pairs(board: Board) -> list[Pair]:
    """Rows with pretraining, each with the row that differs from it in that alone."""
    plain = {row.contender: row for row in board.rows if row.contender.pretraining == "none"}
    return [
        (row, plain[without])
        for row in board.rows
        if row.contender.pretraining != "none" and (without := row.contender._replace(pretraining="none")) in plain
    ]


def _gains(board: Board, one: Row, other: Row, *, several: bool) -> list[float]:
    """Differences of the runs that both have: means by dataset, with `several` of them, or else by seed."""
    found: dict[str | int, list[float]] = {}
    for place, column in enumerate(board.columns):
        ours, theirs = (_values(row, place) for row in (one, other))
        for seed in sorted(ours.keys() & theirs.keys()):
            found.setdefault(column.dataset if several else seed, []).append(ours[seed] - theirs[seed])
    return [fsum(values) / len(values) for values in found.values()]


def _values(row: Row, place: int) -> Mapping[int, float]:
    return row.scores[place].values.get(HEADLINE, {})


def _forest(
    names: Sequence[str], values: Sequence[Sequence[float]], colours: Sequence[str], label: str, over: str
) -> Figure:
    """A line for each name: its values as pale dots, their mean, its interval, and both as numbers on the right."""
    figure = Figure(figsize=(WIDTH, 1.0 + 0.21 * len(names)))
    ax = figure.subplots()
    for place, (own, colour) in enumerate(zip(values, colours, strict=True)):
        mean = fsum(own) / len(own)
        ends = statistics.interval(own) if len(own) >= FEWEST else None
        if ends is not None:
            ax.plot(ends, [place, place], color=colour, linewidth=1.4, zorder=2)
        ax.plot(own, [place] * len(own), "o", color=colour, markersize=3, markeredgewidth=0, alpha=0.45, zorder=3)
        ax.plot([mean], [place], "D", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        told = words.interval_text(mean, ends, sign="+").replace("-", "−")
        ax.text(1.01, place, told, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.5", linewidth=0.8, zorder=1)
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.grid(visible=True)
    ax.set_xlabel(label)
    keys = [
        Line2D([], [], linestyle="none", marker="D", color="0.3", label=f"mean over {over}"),
        Line2D([], [], color="0.3", label="its 95 % interval"),
        Line2D([], [], linestyle="none", marker="o", markersize=3, color="0.6", label=f"one of the {over}"),
    ]
    layout.legend_below(figure, keys, keys=1.6)
    return figure

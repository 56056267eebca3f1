"""How methods fare as bags grow: a panel for each dataset, a line for each method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from llpbench.report.boards import HEADLINE, Board, Contender, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import GREY, METHODS, OWN, PAPER, Style, row_styles
from llpbench.report.statistics import interval

MOST_LINES = 12
"""that can be told apart; with more, those that least need it are grey"""

MOST_PANELS = 12

MOST_LABELS = 6
"""of sizes that have room under a panel"""


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Test AUC against bag size, where a dataset has several sizes."""
    sizes = {
        dataset: [column.bag_size for column in board.columns if column.dataset == dataset and column.bag_size]
        for dataset in dict.fromkeys(column.dataset for column in board.columns)
    }
    rows = [row for row in layout.plain_rows(board) if any(score.headline for score in row.scores)]
    datasets = [dataset for dataset in sizes if len(sizes[dataset]) > 1]
    if not datasets or not rows:
        return
    drawn = datasets[:MOST_PANELS]
    styles, names = row_styles(rows), layout.labels(rows)
    coloured, grey = _prominent(rows)
    legend = layout.handles(styles, {row.contender: names[row.contender] for row in coloured})
    if grey:
        legend.append(Line2D([], [], color=GREY, linewidth=0.8, label=f"others ({len(grey)})"))
    across = layout.balanced(len(drawn), most=3)
    figure, axes = layout.panels(len(drawn), across=across, height=2.1, below=0.2 + layout.legend_height(legend))
    for place, (ax, dataset) in enumerate(zip(axes, drawn, strict=True)):
        _panel(ax, board, dataset, coloured, grey, styles)
        ax.set_title(layout.shown(dataset))
        if place % across == 0:
            ax.set_ylabel("test AUC × 100")
    layout.label_below(axes, across, "bag size")
    layout.legend_below(figure, legend)
    about = About(
        kind="bag-size",
        name=f"bag-size-{name}",
        title="Test AUC by bag size",
        caption=layout.sentences(
            "Mean over seeds, with its 95 % confidence interval as a band where there are several seeds; axes follow "
            "the means and may cut off a band.",
            f"In grey: {', '.join(names[row.contender].strip() for row in grey)}." if grey else "",
            layout.plain_note(board),
            f"The first {len(drawn)} of {len(datasets)} datasets." if len(drawn) < len(datasets) else "",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def _prominent(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows in colour and rows in grey. Readers ask for the paper's methods, the best of ours, floor, ceiling and
    newcomers."""
    if len(rows) <= MOST_LINES:
        return list(rows), []
    first = {*PAPER, *OWN, "supervised", "bag-soft-label"}
    order = sorted(
        rows, key=lambda row: 0 if row.contender.method in first else 2 if row.contender.method in METHODS else 1
    )
    chosen = {
        row.contender
        for row in order[:MOST_LINES]
        if row.contender.method in first or row.contender.method not in METHODS
    }
    return [row for row in rows if row.contender in chosen], [row for row in rows if row.contender not in chosen]


def _panel(
    ax: Axes,
    board: Board,
    dataset: str,
    coloured: Sequence[Row],
    grey: Sequence[Row],
    styles: Mapping[Contender, Style],
) -> None:
    columns = enumerate(board.columns)
    places = [place for place, column in columns if column.dataset == dataset and column.bag_size]
    shown: list[float] = []
    for row in (*grey, *reversed(coloured)):  # the best on top
        known = [place for place in places if row.scores[place].headline]
        values = [list(row.scores[place].values[HEADLINE].values()) for place in known]
        sizes = [board.columns[place].bag_size for place in known]
        means = [math.fsum(each) / len(each) for each in values]
        shown += means
        if row in grey:
            ax.plot(sizes, means, color=GREY, linewidth=0.8, marker="." if len(sizes) == 1 else "", zorder=1.5)
            continue
        style = styles[row.contender]
        ax.plot(sizes, means, **style.curve())
        several = [place for place, each in enumerate(values) if len(each) > 1]
        bands = [interval(values[place], 0.95) for place in several]
        ax.fill_between(
            [sizes[place] for place in several],
            [low for low, _ in bands],
            [high for _, high in bands],
            color=style.colour,
            alpha=0.06,
            linewidth=0,
            zorder=1,
        )
    ax.set_xscale("log", base=2)
    ticks = [board.columns[place].bag_size for place in places]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    every = math.ceil(len(ticks) / MOST_LABELS)
    ax.set_xticks(ticks, ["" if n % every else board.columns[place].bags for n, place in enumerate(places)])
    ax.yaxis.grid(visible=True)
    if shown:
        margin = 0.06 * (max(shown) - min(shown)) or 1.0
        ax.set_ylim(min(shown) - margin, max(shown) + margin)

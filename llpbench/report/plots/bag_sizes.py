"""How methods fare as bags grow: a panel for each dataset, methods side by side at each size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from llpbench.report.boards import FEW_BAGS, HEADLINE, Board, Contender, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import GREY, METHODS, Style, row_styles
from llpbench.report.statistics import interval

MOST_LINES = 12
"""that can be told apart; with more, those that least need it are grey"""

FIRST = 8
"""of the board: never grey, whatever they are"""

MOST_PANELS = 12

ROOM = 0.76
"""of the way from one bag size to the next, for methods side by side"""

FEWEST_SEEDS = 3
"""of an interval: that of two is nine times their standard deviation, and would hide all else"""

_INTERVAL, _CUT = "95 % t interval over seeds", "goes on beyond the axis"

MOST_LABELS = 6
"""of sizes that have room under a panel"""


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Test AUC against bag size, where a dataset has several sizes."""
    sizes = {
        dataset: [column.bag_size for column in board.columns if column.dataset == dataset and column.bag_size]
        for dataset in dict.fromkeys(column.dataset for column in board.columns)
    }
    datasets = [dataset for dataset in sizes if len(sizes[dataset]) > 1]
    drawn = datasets[:MOST_PANELS]
    places = [n for n, column in enumerate(board.columns) if column.dataset in drawn and column.bag_size]
    rows = [row for row in layout.plain_rows(board) if any(row.scores[place].headline for place in places)]
    if not rows:
        return
    single = [dataset for dataset in sizes if dataset not in datasets]
    styles, names = row_styles(rows), layout.labels(rows)
    coloured, grey = _prominent(rows)
    legend = layout.handles(styles, {row.contender: names[row.contender] for row in coloured}, lines=False)
    if grey:
        legend.append(Line2D([], [], color=GREY, linewidth=0.8, label=f"means of others ({len(grey)})"))
    legend.append(Line2D([], [], color="0.3", marker="|", markersize=9, linestyle="none", label=_INTERVAL))
    legend.append(Line2D([], [], color="0.3", marker="^", markersize=4, linestyle="none", label=_CUT))
    across = layout.balanced(len(drawn), most=2)
    figure, axes = layout.panels(len(drawn), across=across, height=2.3, below=0.2 + layout.legend_height(legend))
    cut = [_panel(ax, board, dataset, coloured, grey, styles) for ax, dataset in zip(axes, drawn, strict=True)]
    legend = legend if any(cut) else legend[:-1]
    for place, (ax, dataset) in enumerate(zip(axes, drawn, strict=True)):
        ax.set_title(layout.shown(dataset))
        if place % across == 0:
            ax.set_ylabel("test AUC × 100")
    layout.label_below(axes, across, "rows of a bag")
    layout.legend_below(figure, legend, keys=1.4)
    about = About(
        kind="bag-size",
        name=f"bag-size-{name}",
        title="Test AUC by bag size",
        caption=layout.sentences(
            f"Mean over seeds, with its 95 % t interval where there are {FEWEST_SEEDS} or more: methods side by side, "
            "in the order of the leaderboard. Axes follow the means; an arrow marks an interval that goes on beyond.",
            f"In grey: {', '.join(names[row.contender].strip() for row in grey)}." if grey else "",
            f"Grey lines join the means of these {len(grey)}, without intervals; a grey dot: a single bag size."
            if grey
            else "",
            layout.plain_note(board),
            f"The first {len(drawn)} of {len(datasets)} datasets, without room for {', '.join(datasets[len(drawn) :])}."
            if len(drawn) < len(datasets)
            else "",
            f"Left out, since their bags are not of two or more sizes: {', '.join(single)}." if single else "",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
        note=f"Not drawn, since all their bags are of one size: {', '.join(map(layout.shown, single))}."
        if single
        else "",
    )
    yield Drawing(about, figure)


def _prominent(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows in colour and rows in grey. Readers look for the first of the board, a ceiling, a floor and newcomers."""
    if len(rows) <= MOST_LINES:
        return list(rows), []
    plain = [row for row in rows if not row.contender.tuned]
    marked = [next((row for row in plain if row.mark == mark), None) for mark in ("ceiling", "floor")]
    first = [row for row in plain if row.rank is not None][:FIRST]
    learners = [row for row in plain if row.contender.role != "ceiling"]
    others = sorted(learners, key=lambda row: row.contender.method in METHODS)
    order = dict.fromkeys(row.contender for row in (*marked, *first, *others) if row is not None)
    chosen = [*order][:MOST_LINES]
    return [row for row in rows if row.contender in chosen], [row for row in rows if row.contender not in chosen]


def _panel(
    ax: Axes,
    board: Board,
    dataset: str,
    coloured: Sequence[Row],
    grey: Sequence[Row],
    styles: Mapping[Contender, Style],
) -> bool:
    """Whether an interval goes beyond the axis, which follows the means."""
    places = [n for n, column in enumerate(board.columns) if column.dataset == dataset and column.bag_size]
    shown: list[float] = []
    for row in grey:
        behind = [(x, _values(row, place)) for x, place in enumerate(places) if row.scores[place].headline]
        means = [math.fsum(values) / len(values) for _, values in behind]
        shown += means
        marker = "." if len(behind) == 1 else ""
        ax.plot([x for x, _ in behind], means, color=GREY, linewidth=0.8, marker=marker, zorder=1.5)
    step = ROOM / max(len(coloured), 1)
    ends: list[tuple[float, float, float, str]] = []
    for number, row in enumerate(coloured):
        aside = (number - (len(coloured) - 1) / 2) * step
        known = [(x + aside, _values(row, place)) for x, place in enumerate(places) if row.scores[place].headline]
        means = [math.fsum(values) / len(values) for _, values in known]
        shown += means
        several = [(x, *interval(values)) for x, values in known if len(values) >= FEWEST_SEEDS]
        style = styles[row.contender]
        ends += [(*each, style.colour) for each in several]
        ax.vlines(*zip(*several, strict=True), color=style.colour, linewidth=1, zorder=2) if several else None
        ax.plot([x for x, _ in known], means, zorder=3, **{**style.points(), "markersize": 4})
    every = math.ceil(len(places) / MOST_LABELS)
    ax.set_xticks(range(len(places)), [_label(board, place) if not n % every else "" for n, place in enumerate(places)])
    ax.set_xlim(-0.5, len(places) - 0.5)
    for edge in range(1, len(places)):
        ax.axvline(edge - 0.5, color="0.9", linewidth=0.6, zorder=0)
    ax.tick_params(axis="x", length=0)
    ax.yaxis.grid(visible=True)
    if not shown:
        return False
    margin = 0.08 * (max(shown) - min(shown)) or 1.0
    bottom, top = min(shown) - margin, max(shown) + margin
    ax.set_ylim(bottom, top)
    for centre, low, high, colour in ends:
        for beyond, limit, arrow in ((low < bottom, bottom, "v"), (high > top, top, "^")):
            if beyond:
                ax.plot([centre], [limit], color=colour, marker=arrow, markersize=4, clip_on=False, zorder=2.5)
    return any(low < bottom or high > top for _, low, high, _ in ends)


def _values(row: Row, place: int) -> list[float]:
    return [*row.scores[place].values[HEADLINE].values()]


def _label(board: Board, place: int) -> str:
    """The size of a column's bags, with a mark where it does not count."""
    column = board.columns[place]
    return column.bags if column.counts else f"{column.bags} {FEW_BAGS}"

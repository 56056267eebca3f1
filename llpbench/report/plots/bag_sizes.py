"""How the test metric changes with the size of bags: a panel a dataset, methods side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from llpbench.report import wording as words
from llpbench.report.boards import FEW_BAGS, Board, Contender, Row
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import METHODS, Style, row_styles

MOST_LINES = 7
"""methods that can be followed from size to size"""

FIRST = 3
"""of the leaderboard: always drawn"""

MOST_PANELS = 12

ROOM = 0.5
"""of the way from one bag size to the next, for methods side by side"""

MOST_LABELS = 6
"""of sizes that have room under a panel"""


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """The test metric against bag size, where a dataset has several sizes."""
    sizes: dict[str, list[int]] = {column.dataset: [] for column in board.columns}
    for place, column in enumerate(board.columns):
        sizes[column.dataset] += [place] if column.bag_size else []
    datasets = [dataset for dataset in sizes if len(sizes[dataset]) > 1]
    drawn = datasets[:MOST_PANELS]
    places = [place for dataset in drawn for place in sizes[dataset]]
    every = [row for row in layout.plain_rows(board) if any(row.scores[place].values for place in places)]
    rows = _prominent(every)
    if not rows:
        return
    single = [dataset for dataset in sizes if dataset not in datasets]
    styles, names = row_styles(every), layout.labels(every)
    legend = layout.handles(styles, {row.contender: names[row.contender] for row in rows})
    legend.append(Line2D([], [], color="0.3", marker="|", markersize=9, linestyle="none", label="± standard deviation"))
    across = layout.balanced(len(drawn), most=2)
    figure, axes = layout.panels(len(drawn), across=across, height=2.2, below=0.2 + layout.legend_height(legend))
    for place, (ax, dataset) in enumerate(zip(axes, drawn, strict=True)):
        _panel(ax, board, sizes[dataset], rows, styles)
        ax.set_title(layout.shown(dataset))
        if place % across == 0:
            ax.set_ylabel(layout.metric_text(board))
    layout.label_below(axes, across, "rows of a bag")
    layout.legend_below(figure, legend)
    about = layout.about(
        board,
        "bag-size",
        name,
        f"Test {board.metric.title} by bag size",
        words.caption("plot_bag_size"),
        layout.left_out(len(every) - len(rows), "further method"),
        layout.plain_note(board),
        f"The first {len(drawn)} of {len(datasets)} datasets, without room for {', '.join(datasets[len(drawn) :])}."
        if len(drawn) < len(datasets)
        else "",
        f"Left out, since their bags are not of two or more sizes: {', '.join(single)}." if single else "",
        note=f"Not drawn, since all their bags are of one size: {', '.join(map(layout.shown, single))}."
        if single
        else "",
    )
    yield Drawing(about, figure)


def _prominent(rows: Sequence[Row]) -> list[Row]:
    """The rows that readers look for: a ceiling, a floor, the first of the board, newcomers, then the next best."""
    plain = [row for row in rows if not row.contender.tuned]
    marked = [next((row for row in plain if row.mark == mark), None) for mark in ("ceiling", "floor")]
    ranked = [row for row in plain if row.rank is not None]
    learners = [row for row in plain if row.contender.role != "ceiling"]
    others = sorted(learners, key=lambda row: row.contender.method in METHODS)
    order = dict.fromkeys(row.contender for row in (*marked, *ranked[:FIRST], *others, *rows) if row is not None)
    chosen = [*order][:MOST_LINES]
    return [row for row in rows if row.contender in chosen]


def _panel(
    ax: Axes, board: Board, places: Sequence[int], rows: Sequence[Row], styles: Mapping[Contender, Style]
) -> None:
    step = ROOM / max(len(rows), 1)
    for number, row in enumerate(rows):
        aside = (number - (len(rows) - 1) / 2) * step
        known = [(x + aside, each) for x, place in enumerate(places) if (each := row.scores[place].headline)]
        bars = [(x, each.mean - each.std, each.mean + each.std) for x, each in known if each.std is not None]
        style = styles[row.contender]
        if bars:
            ax.vlines(*zip(*bars, strict=True), color=style.colour, linewidth=1, zorder=2)
        look = {**style.curve(), "markersize": 4, "linewidth": 0.9}
        ax.plot([x for x, _ in known], [each.mean for _, each in known], zorder=3, **look)
    every = math.ceil(len(places) / MOST_LABELS)
    ax.set_xticks(range(len(places)), [_label(board, place) if not n % every else "" for n, place in enumerate(places)])
    ax.set_xlim(-0.5, len(places) - 0.5)
    ax.tick_params(axis="x", length=0)
    ax.yaxis.grid(visible=True)


def _label(board: Board, place: int) -> str:
    """The size of a column's bags, with a mark where it does not count."""
    column = board.columns[place]
    return column.bags if column.counts else f"{column.bags} {FEW_BAGS}"

"""Test metric by bag size: a panel for each dataset, a line for each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from matplotlib.axes import Axes

from llpbench.report.boards import FEW_BAGS, Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import Style, row_styles

MOST_LINES = 5

MOST_PANELS = 9


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the datasets with several bag sizes, and rows with more than half of these columns."""
    sizes: dict[str, list[int]] = {}
    for place, column in enumerate(board.columns):
        if column.bag_size:
            sizes.setdefault(column.dataset, []).append(place)
    drawn = dict([item for item in sizes.items() if len(item[1]) > 1][:MOST_PANELS])
    places = {place for columns in drawn.values() for place in columns}
    lacking = {n: sum(not row.scores[place].values for place in places) for n, row in enumerate(board.rows)}
    rows = layout.prominent(board, [n for n, number in lacking.items() if 2 * number < len(places)], MOST_LINES)
    if not rows:
        return
    styles, names = row_styles(board, rows), layout.labels(board)
    panels = layout.panels(len(drawn), height=1.9, below=0.2)
    for ax, (dataset, columns) in zip(panels.axes, drawn.items(), strict=True):
        for row in rows:
            _line(ax, board, row, columns, styles[row], names[row])
        _axis(ax, board, columns)
        ax.set_title(layout.shown(dataset))
    panels.label("rows of a bag", layout.metric_text(board))
    layout.legend(panels.figure)
    leader = next((row for row in board.ranked if row in rows), rows[0])
    loss = _loss(board, leader, [*drawn.values()])
    yield layout.of_board(board, name, "bag-size", panels.figure, first=names[leader], **loss)


def _loss(board: Board, leader: int, drawn: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """Return the loss of a row from the smallest to the largest bags, averaged over datasets."""
    scores = board.rows[leader].scores
    ends = [(scores[columns[0]].headline, scores[columns[-1]].headline) for columns in drawn]
    losses = [small.mean - large.mean for small, large in ends if small and large]
    smallest, largest = ({board.columns[columns[end]].bag_size or 0 for columns in drawn} for end in (0, -1))
    return {
        "lost": board.sign * fmean(losses) if losses else None,
        "small": f"{min(smallest):,}",
        "large": f"{max(largest):,}",
        "number": len(losses),
    }


def _line(ax: Axes, board: Board, row: int, places: Sequence[int], style: Style, name: str) -> None:
    scores = board.rows[row].scores
    points = [(x, summary) for x, place in enumerate(places) if (summary := scores[place].headline)]
    for x, summary in points:
        std = summary.std or 0
        ax.vlines(x, summary.mean - std, summary.mean + std, color=style.colour, linewidth=1)
    look = {**style.curve(), "markersize": 4}
    ax.plot([x for x, _ in points], [summary.mean for _, summary in points], label=name, **look)


def _axis(ax: Axes, board: Board, places: Sequence[int]) -> None:
    columns = [board.columns[place] for place in places]
    texts = [column.bags if column.counts else f"{column.bags} {FEW_BAGS}" for column in columns]
    step = -(-len(places) // 3)
    ax.set_xticks(range(len(places)), [text if not n % step else "" for n, text in enumerate(texts)])
    ax.set_xlim(-0.3, len(places) - 0.7)
    ax.yaxis.grid(visible=True)

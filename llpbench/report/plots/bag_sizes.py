"""How the test metric changes with the size of bags: a panel a dataset, methods side by side."""

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

HEIGHT = 1.9
"""inches of a panel"""


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """The test metric against bag size, where a dataset has several sizes."""
    sizes: dict[str, list[int]] = {}
    for place, column in enumerate(board.columns):
        if column.bag_size:
            sizes.setdefault(column.dataset, []).append(place)
    drawn = dict([each for each in sizes.items() if len(each[1]) > 1][:MOST_PANELS])
    places = {place for own in drawn.values() for place in own}
    lacks = {n: sum(not row.scores[place].values for place in places) for n, row in enumerate(board.rows)}
    able = [n for n, number in lacks.items() if 2 * number < len(places)]
    rows = layout.prominent(board, able, MOST_LINES)
    if not rows:
        return
    styles, names = row_styles(board, rows), layout.labels(board)
    across = layout.balanced(len(drawn))
    figure, axes = layout.panels(len(drawn), across=across, height=HEIGHT, below=0.2)
    for ax, (dataset, own) in zip(axes, drawn.items(), strict=True):
        for row in rows:
            _line(ax, board, row, own, styles[row], names[row])
        _axis(ax, board, own)
        ax.set_title(layout.shown(dataset))
    for ax in axes[::across]:
        ax.set_ylabel(layout.metric_text(board))
    layout.label_below(axes, across, "rows of a bag")
    layout.legend(figure)
    leader = next((row for row in board.ranked if row in rows), rows[0])
    lost = _lost(board, leader, [*drawn.values()])
    yield layout.of_board(board, name, "bag-size", figure, first=names[leader], **lost)


def _lost(board: Board, leader: int, drawn: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """Loss of a row from the smallest to the largest bags, averaged over datasets."""
    ends = [[board.rows[leader].scores[place].headline for place in (own[0], own[-1])] for own in drawn]
    lost = [small.mean - large.mean for small, large in ends if small and large]
    smallest, largest = ({board.columns[own[at]].bag_size for own in drawn} for at in (0, -1))
    return {
        "lost": board.sign * fmean(lost) if lost else None,
        "small": f"{min(smallest):,}",
        "large": f"{max(largest):,}",
        "number": len(lost),
    }


def _line(ax: Axes, board: Board, row: int, places: Sequence[int], look: Style, name: str) -> None:
    scores = board.rows[row].scores
    known = [(x, each) for x, place in enumerate(places) if (each := scores[place].headline)]
    for x, each in known:
        ax.vlines(x, each.mean - (each.std or 0), each.mean + (each.std or 0), color=look.colour, linewidth=1)
    ax.plot([x for x, _ in known], [each.mean for _, each in known], label=name, **{**look.curve(), "markersize": 4})


def _axis(ax: Axes, board: Board, places: Sequence[int]) -> None:
    columns = [board.columns[place] for place in places]
    shown = [each.bags if each.counts else f"{each.bags} {FEW_BAGS}" for each in columns]
    step = -(-len(places) // 3)
    ax.set_xticks(range(len(places)), [text if not n % step else "" for n, text in enumerate(shown)])
    ax.set_xlim(-0.3, len(places) - 0.7)
    ax.yaxis.grid(visible=True)

"""Test metric by bag size: a panel for each dataset, a line for each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from matplotlib.axes import Axes

from llpbench.report.boards import FEW_BAGS, Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import Style, entry_styles

MOST_LINES = 5

MOST_PANELS = 9


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the datasets with several bag sizes, and entries with more than half of these tasks."""
    sized = board.tasks[board.tasks["bag_size"].notna()]
    sizes = {dataset: [*tasks.index] for dataset, tasks in sized.groupby("dataset", sort=False) if len(tasks) > 1}
    drawn = dict([*sizes.items()][:MOST_PANELS])
    tasks = [task for of_dataset in drawn.values() for task in of_dataset]
    lacking = {n: sum(board.summary(n, task) is None for task in tasks) for n in board.entries.index}
    entries = layout.prominent(board, [n for n, number in lacking.items() if 2 * number < len(tasks)], MOST_LINES)
    if not entries:
        return
    styles, names = entry_styles(board, entries), layout.labels(board)
    panels = layout.panels(len(drawn), height=1.9, below=0.2)
    for ax, (dataset, of_dataset) in zip(panels.axes, drawn.items(), strict=True):
        for entry in entries:
            _curve(ax, board, entry, of_dataset, styles[entry], names[entry])
        _axis(ax, board, of_dataset)
        ax.set_title(layout.shown(dataset))
    panels.label("rows of a bag", layout.metric_text(board))
    layout.legend(panels.figure)
    leader = next((entry for entry in board.ranked if entry in entries), entries[0])
    loss = _loss(board, leader, [*drawn.values()])
    yield layout.of_board(board, name, "bag-size", panels.figure, first=names[leader], **loss)


def _loss(board: Board, leader: int, drawn: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """Return the loss of an entry from the smallest to the largest bags, averaged over datasets."""
    ends = [(board.summary(leader, tasks[0]), board.summary(leader, tasks[-1])) for tasks in drawn]
    losses = [small.mean - large.mean for small, large in ends if small and large]
    smallest, largest = (board.tasks["bag_size"][[tasks[end] for tasks in drawn]] for end in (0, -1))
    return {
        "lost": board.sign * fmean(losses) if losses else None,
        "small": f"{min(smallest):,}",
        "large": f"{max(largest):,}",
        "number": len(losses),
    }


def _curve(ax: Axes, board: Board, entry: int, tasks: Sequence[int], style: Style, name: str) -> None:
    points = [(x, summary) for x, task in enumerate(tasks) if (summary := board.summary(entry, task))]
    for x, summary in points:
        std = summary.std or 0
        ax.vlines(x, summary.mean - std, summary.mean + std, color=style.colour, linewidth=1)
    look = {**style.curve(), "markersize": 4}
    ax.plot([x for x, _ in points], [summary.mean for _, summary in points], label=name, **look)


def _axis(ax: Axes, board: Board, tasks: Sequence[int]) -> None:
    shown = board.tasks.loc[[*tasks]].itertuples()
    texts = [task.bags if task.counts else f"{task.bags} {FEW_BAGS}" for task in shown]
    step = -(-len(tasks) // 3)
    ax.set_xticks(range(len(tasks)), [text if not n % step else "" for n, text in enumerate(texts)])
    ax.set_xlim(-0.3, len(tasks) - 0.7)
    ax.yaxis.grid(visible=True)

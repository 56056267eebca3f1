"""Test metric by bag size: a panel for each dataset, a line for each of three methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from matplotlib.axes import Axes

from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.layout import LOOKS, Drawing

MOST_PANELS = 6


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Draw leader, best network and floor on datasets with several bag sizes. They need more than half of the tasks."""
    sized = board.tasks[board.tasks["bag_size"].notna()]
    sizes = {dataset: [*tasks.index] for dataset, tasks in sized.groupby("dataset", sort=False) if len(tasks) > 1}
    drawn = dict([*sizes.items()][:MOST_PANELS])
    tasks = [task for of_dataset in drawn.values() for task in of_dataset]
    lacking = {n: sum(board.summary(n, task) is None for task in tasks) for n in board.learners}
    entries = layout.prominent(board, [n for n, number in lacking.items() if 2 * number < len(tasks)], len(LOOKS[:3]))
    if not entries:
        return
    names = layout.labels(board)
    panels = layout.panels(len(drawn), height=1.7, below=0.2)
    for ax, (dataset, of_dataset) in zip(panels.axes, drawn.items(), strict=True):
        for entry, (colour, marker) in zip(entries, LOOKS, strict=False):
            points = [(x, summary) for x, task in enumerate(of_dataset) if (summary := board.summary(entry, task))]
            for x, summary in points:
                std = summary.std or 0
                ax.vlines(x, summary.mean - std, summary.mean + std, color=colour, linewidth=1)
            means = [summary.mean for _, summary in points]
            ax.plot([x for x, _ in points], means, color=colour, marker=marker, label=names[entry])
        _axis(ax, board, of_dataset)
        ax.set_title(layout.shown(dataset, 26))
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


def _axis(ax: Axes, board: Board, tasks: Sequence[int]) -> None:
    texts = board.tasks["bags"][[*tasks]].tolist()
    step = -(-len(tasks) // 3)
    ax.set_xticks(range(len(tasks)), [text if not n % step else "" for n, text in enumerate(texts)])
    ax.set_xlim(-0.3, len(tasks) - 0.7)
    ax.yaxis.grid(visible=True)

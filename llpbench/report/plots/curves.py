"""Test metric by bag size, and predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from pandas import DataFrame, notna

from llpbench.report.board_tables import constants
from llpbench.report.boards import Board
from llpbench.report.leaderboard import mean
from llpbench.report.plots import layout
from llpbench.report.plots.layout import GREY, LOOKS, Drawing

_MOST_PANELS = 6

_MOST_ENTRIES = 4
"""Entries of the board; each has a panel."""

_FEWEST = 50
"""Smallest number of test rows in a bin."""


def bag_size_curves(board: Board, name: str) -> Iterator[Drawing]:
    """Draw leader, best network and floor on datasets with several bag sizes. They need more than half of the tasks."""
    sized = board.tasks[board.tasks["bag_size"].notna()]
    sizes = {dataset: [*tasks.index] for dataset, tasks in sized.groupby("dataset", sort=False) if len(tasks) > 1}
    drawn = dict([*sizes.items()][:_MOST_PANELS])
    tasks = [task for of_dataset in drawn.values() for task in of_dataset]
    means, stds = (board.scores[part].unstack("entry") for part in ("mean", "std"))
    lacking = means.loc[tasks, board.learners].isna().sum()
    entries = layout.prominent(board, lacking.index[2 * lacking < len(tasks)], len(LOOKS[:3]))
    if not entries:
        return
    names = layout.labels(board)
    panels = layout.panels(len(drawn), height=1.7, below=0.2)
    for ax, (dataset, of_dataset) in zip(panels.axes, drawn.items(), strict=True):
        for entry, (colour, marker) in zip(entries, LOOKS, strict=False):
            points = means.loc[of_dataset, entry].reset_index(drop=True).dropna()
            std = stds.loc[of_dataset, entry].reset_index(drop=True)[points.index].fillna(0)
            for x, value in points.items():
                ax.vlines(x, value - std[x], value + std[x], color=colour, linewidth=1)
            ax.plot(points.index, points, color=colour, marker=marker, label=names[entry])
        _axis(ax, board, of_dataset)
        ax.set_title(layout.shown(dataset, 26))
    panels.label("rows of a bag", layout.metric_text(board))
    layout.legend(panels.figure)
    leader = next((entry for entry in board.ranked if entry in entries), entries[0])
    loss = _loss(board, leader, [*drawn.values()])
    yield layout.of_board(board, name, "bag-size", panels.figure, first=names[leader], **loss)


def _loss(board: Board, leader: int, drawn: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """Return the loss of an entry from the smallest to the largest bags, averaged over datasets."""
    means = board.scores["mean"][leader]
    losses = [loss for tasks in drawn if notna(loss := means[tasks[0]] - means[tasks[-1]])]
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


def reliability(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a panel for each entry and a line for each dataset. Seeds and bag sizes are pooled."""
    curves = _curves(board)
    constant = constants(board)  # calibrated, and without a curve
    drawn = [entry for entry in board.learners if entry in curves.index.unique(0) and entry not in constant]
    entries = layout.prominent(board, drawn, _MOST_ENTRIES)
    if not entries:
        return
    panels = layout.panels(len(entries), height=1.9, below=0.1, share_y=True)
    names, datasets = layout.labels(board, longest=30), board.tasks["dataset"].unique()
    for ax, entry in zip(panels.axes, entries, strict=True):
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        for (colour, marker), dataset in zip(LOOKS, datasets, strict=False):
            if (entry, dataset) in curves.index.droplevel(2):
                curve = curves.loc[entry, dataset]
                (line,) = ax.plot(curve["predicted"], curve["true"], color=colour, label=layout.shown(dataset))
                line.set(marker=marker, markersize=2.5, linewidth=1.2, clip_on=False)
        ax.set_title(names[entry])
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    panels.label("predicted probability", "observed frequency")
    layout.legend(panels.figure)
    errors = mean(board, "ece").reindex(entries)["mean"].dropna().sort_values()
    named = [(names[entry], 100 * error) for entry, error in errors.items()]
    yield layout.of_board(board, name, "reliability", panels.figure, errors=named)


def _curves(board: Board) -> DataFrame:
    """Return predicted probability and observed frequency of ten bins with enough rows, by entry, dataset and bin."""
    names, parts = ["rows", "predicted", "true"], []
    for entry, dataset, run in zip(*(board.runs[name] for name in ("entry", "dataset", "run")), strict=True):
        result: Mapping[str, Any] = board.records[run]["results"].get(board.criterion.name) or {}
        parts += [(entry, dataset, *part) for part in result.get("reliability", [])]
    bins = DataFrame(parts, columns=["entry", "dataset", *names]).astype(dict.fromkeys(names, float))
    bins["bin"] = (bins["predicted"] * 10).astype(int).clip(upper=9)
    bins[["predicted", "true"]] = bins[["predicted", "true"]].mul(bins["rows"], axis="index")
    sums = bins.groupby(["entry", "dataset", "bin"])[names].sum()
    sums = sums[sums["rows"] >= _FEWEST]
    return sums[["predicted", "true"]].div(sums["rows"], axis="index")

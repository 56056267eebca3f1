"""Reliability plot: predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pandas import DataFrame

from llpbench.report.boards import Board
from llpbench.report.leaderboard import mean
from llpbench.report.plots import layout
from llpbench.report.plots.layout import GREY, LOOKS, Drawing

MOST_ENTRIES = 4
"""Entries of the board; each has a panel."""

FEWEST = 50
"""Smallest number of test rows in a bin."""


def reliability(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a panel for each entry and a line for each dataset. Seeds and bag sizes are pooled."""
    curves = _curves(board)
    drawn = [entry for entry in board.learners if entry in curves.index.unique(0)]
    entries = layout.prominent(board, drawn, MOST_ENTRIES)
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
    sums = sums[sums["rows"] >= FEWEST]
    return sums[["predicted", "true"]].div(sums["rows"], axis="index")

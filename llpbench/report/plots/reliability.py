"""Reliability plot: predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pandas import DataFrame

from llpbench.report.boards import Board, Row
from llpbench.report.leaderboard import mean
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import GREY

MOST_ROWS = 6
"""Rows of the board; each has a panel."""

FEWEST = 50
"""Smallest number of test rows in a bin."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours of datasets (Okabe & Ito), distinct for colour-blind readers."""


def reliability(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a panel for each row and a line for each dataset. Seeds and bag sizes are pooled."""
    datasets = [*dict.fromkeys(column.dataset for column in board.columns)][: len(COLOURS)]
    curves = {n: {dataset: _curve(board, board.rows[n], dataset) for dataset in datasets} for n in board.learners}
    rows = layout.prominent(board, [n for n in curves if any(len(c) for c in curves[n].values())], MOST_ROWS)
    if not rows:
        return
    panels = layout.panels(len(rows), height=1.9, below=0.1, share_y=True)
    names = layout.labels(board)
    for ax, row in zip(panels.axes, rows, strict=True):
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        for colour, (dataset, curve) in zip(COLOURS, curves[row].items(), strict=False):
            if len(curve):
                (line,) = ax.plot(curve["predicted"], curve["true"], "o-", color=colour, label=layout.shown(dataset))
                line.set(markersize=2.5, linewidth=1.2, clip_on=False)
        ax.set_title(names[row])
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    panels.label("predicted", "came true")
    layout.legend(panels.figure)
    errors = mean(board, "ece").reindex(rows)["mean"].dropna().sort_values()
    named = [(names[row], 100 * error) for row, error in errors.items()]
    yield layout.of_board(board, name, "reliability", panels.figure, errors=named)


def _curve(board: Board, row: Row, dataset: str) -> DataFrame:
    """Return predicted probability and observed frequency of ten bins with enough rows."""
    scores = [score for column, score in zip(board.columns, row.scores, strict=True) if column.dataset == dataset]
    results: list[Mapping[str, Any]] = [
        run["results"].get(board.criterion.name) or {} for score in scores for run in score.runs.values()
    ]
    bins = DataFrame(
        [part for result in results for part in result.get("reliability", [])], columns=["rows", "predicted", "true"]
    ).astype(float)
    sums = bins[["predicted", "true"]].mul(bins["rows"], axis="index").assign(rows=bins["rows"])
    sums = sums.groupby((bins["predicted"] * 10).astype(int).clip(upper=9)).sum()
    sums = sums[sums["rows"] >= FEWEST]
    return sums[["predicted", "true"]].div(sums["rows"], axis="index")

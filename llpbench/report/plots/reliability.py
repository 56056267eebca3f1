"""Whether probabilities mean what they say: what was predicted against how often it came true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from llpbench.report.boards import Board, Row
from llpbench.report.leaderboard import mean
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import GREY

MOST_ROWS = 6
"""a panel each"""

FEWEST = 50
"""rows in a bin, over all seeds: the share of fewer is mostly chance"""

SHADES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""of datasets: Okabe & Ito's, distinct for colour-blind readers"""


def reliability(board: Board, name: str) -> Iterator[Drawing]:
    """A panel for each row, a line for each dataset, seeds and bag sizes pooled; nothing where no run tells."""
    datasets = [*dict.fromkeys(column.dataset for column in board.columns)][: len(SHADES)]
    curves = {n: {each: _curve(board, board.rows[n], each) for each in datasets} for n in board.learners}
    rows = layout.prominent(board, [n for n in board.learners if any(curves[n].values())], MOST_ROWS)
    if not rows:
        return
    across = layout.balanced(len(rows))
    figure, axes = layout.panels(len(rows), across=across, height=1.9, below=0.1, share_y=True)
    names = layout.labels(board)
    for ax, row in zip(axes, rows, strict=True):
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        for shade, (dataset, curve) in zip(SHADES, curves[row].items(), strict=False):
            if curve:
                (line,) = ax.plot(*zip(*curve, strict=True), "o-", color=shade, label=layout.shown(dataset))
                line.set(markersize=2.5, linewidth=1.2, clip_on=False)
        ax.set_title(names[row])
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    for ax in axes[::across]:
        ax.set_ylabel("came true")
    layout.label_below(axes, across, "predicted")
    layout.legend(figure)
    errors = mean(board, "ece").reindex(rows)["mean"].dropna()
    told = [(names[row], 100 * error) for row, error in errors.sort_values().items()]
    yield layout.of_board(board, name, "reliability", figure, errors=told)


def _curve(board: Board, row: Row, dataset: str) -> Sequence[tuple[float, float]]:
    """Mean probability and share of each bin, in ascending order: of all runs, where there are enough rows."""
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    scores = [score for column, score in zip(board.columns, row.scores, strict=True) if column.dataset == dataset]
    runs = [run for score in scores for run in score.runs.values()]
    results = [result for run in runs if (result := run["results"].get(board.criterion.name))]
    for result in results:
        for rows, predicted, true in result.get("reliability", []):
            place = sums[min(int(predicted * 10), 9)]
            for part, value in enumerate((rows, rows * predicted, rows * true)):
                place[part] += value
    return [(p / n, t / n) for _, (n, p, t) in sorted(sums.items()) if n >= FEWEST]

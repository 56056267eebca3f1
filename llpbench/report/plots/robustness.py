"""Whether the accurate methods are the robust ones: two ranks of each method, on one line."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from llpbench.core.text import plural
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles
from llpbench.report.standings import Standings


def robustness(board: Board, name: str) -> Iterator[Drawing]:
    """Mean rank by AUC beside mean rank by spread over seeds, of the ranked rows; nothing where a spread is unknown."""
    found = Standings(board)
    spreads = found.spreads
    if spreads is None:
        return
    by_auc = statistics.mean_ranks(found.frame())
    by_spread = statistics.robustness(spreads)
    rows = sorted(found.ranked, key=lambda row: (-float(by_auc[row.contender.label]), row.contender.label))
    styles, names = row_styles(rows), layout.labels(board.rows)
    figure = Figure(figsize=(WIDTH, 0.9 + 0.21 * len(rows)))
    ax = figure.subplots()
    for place, row in enumerate(rows):
        style, label = styles[row.contender], row.contender.label
        ax.plot([by_auc[label], by_spread[label]], [place, place], color=style.colour, linewidth=1.6, alpha=0.6)
        ax.plot([by_auc[label]], [place], **{**style.points(), "marker": "o", "markersize": 6})
        ax.plot([by_spread[label]], [place], marker="|", markersize=9, markeredgewidth=2.2, color=style.colour)
    ax.set_yticks(range(len(rows)), [names[row.contender] for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlim(left=0.7)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.grid(visible=True)
    ax.set_xlabel("mean rank (1: best)")
    layout.legend_below(
        figure,
        [
            Line2D([], [], linestyle="none", marker="o", markersize=6, color="0.3", label="by AUC"),
            Line2D(
                [],
                [],
                linestyle="none",
                marker="|",
                markersize=9,
                markeredgewidth=2.2,
                color="0.3",
                label="by spread over seeds",
            ),
        ],
    )
    about = About(
        kind="robustness",
        name=f"robustness-{name}",
        title="Accuracy and robustness",
        caption=layout.sentences(
            f"Mean rank of the ranked rows: over {plural(len(found.datasets), 'dataset')} by test AUC, and over "
            f"{plural(len(spreads.columns), 'column')} by its standard deviation over seeds (1: the smallest). A "
            "method can be robust and bad.",
            words.datasets_text(len(found.datasets)),
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)

"""Which differences between methods are more than chance: the critical-difference diagram of Demšar (2006)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import WIDTH, row_styles
from llpbench.report.standings import Standings

ALPHA = 0.05


def critical_difference(board: Board, name: str) -> Iterator[Drawing]:
    """Mean ranks over the datasets of the leaderboard, rows that Nemenyi's test cannot tell apart joined by a bar."""
    found = Standings(board)
    friedman, frame = found.friedman, found.frame()
    p_values = statistics.nemenyi(frame) if friedman is not None else None
    if friedman is None or p_values is None:
        return
    rows = {row.contender.label: row for row in found.ranked}
    ranks = statistics.mean_ranks(frame)
    styles, names = row_styles(rows.values()), layout.labels(board.rows)
    # the library goes through sets of labels: of numbers these have one order, of strings another in each process
    order = list(ranks.sort_values(kind="stable").index)
    number = {label: place for place, label in enumerate(order)}
    figure = Figure()
    ax = figure.subplots()
    drawn = _diagram()(
        ranks.rename(index=number),
        p_values.rename(index=number, columns=number),
        alpha=ALPHA,
        ax=ax,
        text_h_margin=0.02 * len(order),
        label_fmt_left="{label}",
        label_fmt_right="{label}",
        elbow_props={"linewidth": 1.1},
        marker_props={"s": 14},
        crossbar_props={"color": "0.25", "linewidth": 2.4, "solid_capstyle": "round"},
        color_palette={number[label]: styles[rows[label].contender].colour for label in order},
    )
    for text in drawn["labels"]:
        label = order[int(text.get_text())]
        text.set(color="black")
        method, gap = names[rows[label].contender].strip(), "  "
        rank = f"{ranks[label]:.1f}"
        text.set_text(f"{method}  {rank}{gap}" if text.get_ha() == "right" else f"{gap}{rank}  {method}")
    figure.set_size_inches(WIDTH, 0.5 - 0.2 * min(text.get_position()[1] for text in drawn["labels"]))
    _finish(ax, len(order))
    about = About(
        kind="critical-difference",
        name=f"critical-difference-{name}",
        title="Mean ranks and critical difference",
        caption=layout.sentences(
            f"Mean rank of test {HEADLINE.upper()} over datasets (1: best), of {len(order)} ranked rows. "
            f"{words.datasets_text(friedman.datasets)} Rows joined by a bar are not told apart by "
            f"Nemenyi's test at {ALPHA:g}; "
            f"Friedman: chi² = {friedman.statistic:.2f}, p = {friedman.p:.2g}.",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def _diagram() -> Callable[..., dict[str, list[Any]]]:
    from scikit_posthocs import critical_difference_diagram  # type: ignore[import-untyped]

    return critical_difference_diagram  # type: ignore[no-any-return]


def _finish(ax: Axes, number: int) -> None:
    """Whole ranks on the axis, best on the left, and room for the names beside it."""
    ax.set_xlim(1 - 0.5 * number, 1.5 * number)
    ax.spines["top"].set_visible(True)
    ax.spines["top"].set_bounds(1, number)
    ax.set_xticks(range(1, number + 1, 1 + number // 12))

"""What accuracy costs: the mean of the test metric against training time."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import Series

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import costs, mean
from llpbench.report.plots import layout
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import row_styles
from llpbench.report.statistics import pareto_front


def time(board: Board, name: str) -> Iterator[Drawing]:
    """Mean against seconds of training, with the front of rows that no other row beats in both.

    Rows from other machines than most are left out: their times cannot be compared.
    """
    known = costs(board)
    if known.empty:
        return
    own = board.runs.set_index(["column", "seed"])
    machines = own[own.index.isin(board.counting)].groupby("row")["machine"].agg(lambda each: str(sorted({*each})))
    machines = machines.loc[known.columns]
    found = [row for row in known if machines[row] == machines.mode().iat[0]]
    groups = known[found].groupby(level=0)
    least, seconds, most = (board.by_dataset(each).mean() for each in (groups.min(), groups.mean(), groups.max()))
    scores = mean(board).loc[found]
    styles, names = row_styles(board.rows[row] for row in found), layout.labels(board.rows)
    entries = layout.handles(
        styles, {board.rows[row].contender: names[board.rows[row].contender] for row in found}, lines=False
    )
    figure, (ax,) = layout.panels(1, across=1, height=3.6, below=layout.legend_height(entries))
    for row in found:
        look, value = styles[board.rows[row].contender], scores.at[row, "mean"]
        ax.plot([least[row], most[row]], [value, value], color=look.colour, linewidth=1, zorder=2)
        ax.errorbar(seconds[row], value, scores["std"].fillna(0)[row], color=look.colour, linewidth=1, zorder=2)
        ax.plot([seconds[row]], [value], zorder=3, **{**look.points(), "markersize": 6})
    ax.set_xscale("log")
    ax.margins(x=0.06, y=0.06)
    _draw_front(ax, front(board, seconds), scores["mean"], seconds)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(visible=True)
    ax.set_xlabel("training time of a run (seconds)")
    ax.set_ylabel(f"mean {layout.metric_text(board)}")
    layout.legend_below(figure, entries, keys=1.2)
    left_out, others = len(board.rows) - len(known.columns), len(known.columns) - len(found)
    about = layout.about(
        board,
        "time",
        name,
        "Accuracy and training time",
        words.caption("plot_time", columns=len(board.counting_columns)),
        _shared_note(board, found),
        f"{plural(left_out, 'row')} without all of these runs and their times left out." if left_out else "",
        f"{plural(others, 'row')} from other machines left out, whose times cannot be compared." if others else "",
    )
    yield Drawing(about, figure)


def front(board: Board, seconds: Series) -> list[int]:
    """The Pareto front of all but ceilings, cheapest first: rows that no other row beats in both."""
    able = [row for row in seconds.index if board.rows[row].contender.role != "ceiling"]
    labels = {f"{board.rows[row].contender.label} {row}": row for row in able}
    values = board.sign * mean(board)["mean"]
    ahead = pareto_front(seconds[able].set_axis([*labels]), values[able].set_axis([*labels])) if able else []
    return [labels[label] for label in ahead]


def _draw_front(ax: Axes, ahead: list[int], scores: Series, seconds: Series) -> None:
    """What can be had for at most so many seconds: a step up at each row of the front."""
    if ahead:
        ax.set_xlim(ax.get_xlim())
        ax.plot(
            [*seconds[ahead], ax.get_xlim()[1]],
            [*scores[ahead], scores[ahead[-1]]],
            drawstyle="steps-post",
            color="0.45",
            linewidth=1,
            zorder=1,
        )


def _shared_note(board: Board, rows: list[int]) -> str:
    """Whose times are upper bounds, because others used the device meanwhile."""
    marks = [
        board.rows[row].scores[column].runs[seed]["hardware"].get("shared")
        for row in rows
        for column, seed in board.counting
    ]
    shared, unknown = marks.count(True), marks.count(None)
    return layout.sentences(
        f"In {shared} of {len(marks)} runs others used the device, so their times are upper bounds." if shared else "",
        f"{unknown} of {len(marks)} runs do not say whether others used the device." if unknown else "",
    )

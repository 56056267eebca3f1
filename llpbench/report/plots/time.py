"""Mean of the test metric against training time."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import Series

from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.leaderboard import costs, mean
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import row_styles
from llpbench.report.statistics import pareto_front

HEIGHT = 3.4
"""inches"""


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
    same = [row for row in known if machines[row] == machines.mode().iat[0]]
    seconds, scores = board.by_dataset(known[same].groupby(level=0).mean()).mean(), mean(board).loc[same]
    ahead = front(board, seconds)
    first = layout.prominent(board, same, 4)
    rows = [*dict.fromkeys([*first, *reversed(ahead), *layout.prominent(board, same)])][: layout.MOST_MARKS]
    ahead = [row for row in ahead if row in rows]
    styles, names = row_styles(board, rows), layout.labels(board)
    figure, (ax,) = layout.panels(1, across=1, height=HEIGHT)
    for row in rows:
        value, look = scores.at[row, "mean"], {**styles[row].points(), "markersize": 7}
        ax.errorbar(seconds[row], value, scores["std"].fillna(0)[row], color=look["color"], linewidth=1, zorder=2)
        ax.plot([seconds[row]], [value], zorder=3, **look)
    ax.set_xscale("log")
    ax.margins(x=0.1, y=0.15)
    ax.set_xlim(ax.get_xlim())
    steps = _steps([*zip(seconds[ahead], scores["mean"][ahead], strict=True)], ax.get_xlim()[1])
    ax.plot([x for x, _ in steps], [y for _, y in steps], color="0.45", linewidth=1, zorder=1)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="training time of a run (seconds)", ylabel=f"mean {layout.metric_text(board)}")
    for number, row in enumerate(sorted(rows, key=lambda row: float(seconds[row]))):
        # neighbours have their names on different sides
        above, spread = number % 2 == 0, scores["std"].fillna(0)[row]
        ax.annotate(
            names[row],
            (seconds[row], scores.at[row, "mean"] + (spread if above else -spread)),
            (0, 6 if above else -6),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            color=styles[row].colour,
        )
    told = {row: (names[row], scores.at[row, "mean"], words.seconds_text(seconds[row])) for row in rows}
    leader = next((row for row in board.ranked if row in told), rows[0])
    networks = [row for row in board.ranked if row in told and board.rows[row].contender.kind == "neural"]
    others = [told[row] for row in networks if row != leader and not board.rows[row].mark]
    facts = {"leader": told[leader], "network": others[0] if others else None, "shared": _shared(board, rows)}
    yield layout.of_board(board, name, "time", figure, others=len(known.columns) - len(same), **facts)


def front(board: Board, seconds: Series) -> list[int]:
    """The Pareto front of all but ceilings, cheapest first: rows that no other row beats in both."""
    able = [row for row in seconds.index if row in board.learners]
    return pareto_front(seconds[able], board.sign * mean(board)["mean"][able])


def _steps(front: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Corners of the line with the best score within a time."""
    nexts = [*(x for x, _ in front[1:]), end]
    return [corner for (x, y), after in zip(front, nexts, strict=True) for corner in ((x, y), (after, y))]


def _shared(board: Board, rows: list[int]) -> str:
    """`3 of 12`: in how many runs others used the device, whose times are upper bounds; "" if in none."""
    runs = [board.rows[row].scores[column].runs[seed] for row in rows for column, seed in board.counting]
    shared = sum(run["hardware"].get("shared") is True for run in runs)
    return f"{shared} of {len(runs)}" if shared else ""

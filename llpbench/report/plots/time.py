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


def time(board: Board, name: str) -> Iterator[Drawing]:
    """Draw mean against seconds of training, with the Pareto front.

    CPU seconds are used if all runs have recorded them, since other processes do not change these.
    Rows from other machines than most are skipped, because their times are not comparable.
    """
    recorded, cpu = costs(board), costs(board, "cpu_seconds_training")
    if recorded.empty:
        return
    if by_cpu := cpu.columns.equals(recorded.columns):
        recorded = cpu
    same = _rows_of_one_machine(board, [*recorded.columns])
    seconds = board.by_dataset(recorded[same].groupby(level=0).mean()).mean()
    scores = mean(board).loc[same].fillna({"std": 0.0})
    front = pareto_rows(board, seconds)
    first = layout.prominent(board, same, 4)
    rows = [*dict.fromkeys([*first, *reversed(front), *layout.prominent(board, same)])][: layout.MOST_MARKS]
    styles, names = row_styles(board, rows), layout.labels(board)
    panels = layout.panels(1, height=3.4)
    (ax,) = panels.axes
    for place, row in enumerate(sorted(rows, key=lambda row: float(seconds[row]))):
        value, std, colour = scores.at[row, "mean"], scores.at[row, "std"], styles[row].colour
        ax.errorbar(seconds[row], value, std, color=colour, linewidth=1, zorder=2)
        ax.plot([seconds[row]], [value], zorder=3, **{**styles[row].points(), "markersize": 7})
        side = 1 if place % 2 == 0 else -1  # neighbours have their names on different sides
        ax.annotate(
            names[row],
            (seconds[row], value + side * std),
            (0, 6 * side),
            textcoords="offset points",
            ha="center",
            va="bottom" if side > 0 else "top",
            color=colour,
        )
    ax.set_xscale("log")
    ax.margins(x=0.1, y=0.15)
    ax.set_xlim(ax.get_xlim())
    drawn = [row for row in front if row in rows]
    ends = [*seconds[drawn], ax.get_xlim()[1]]
    ax.step(ends, [*scores["mean"][drawn], *scores["mean"][drawn[-1:]]], where="post", color="0.45", lw=1, zorder=1)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(
        xlabel=f"training time of a run ({'CPU ' if by_cpu else ''}seconds)", ylabel=f"mean {layout.metric_text(board)}"
    )
    facts = {row: (names[row], scores.at[row, "mean"], words.seconds_text(seconds[row])) for row in rows}
    leader = next((row for row in board.ranked if row in rows), rows[0])
    networks = [row for row in board.ranked if row in rows and board.rows[row].contender.kind == "neural"]
    network = next((facts[row] for row in networks if row != leader and not board.rows[row].mark), None)
    yield layout.of_board(
        board,
        name,
        "time",
        panels.figure,
        leader=facts[leader],
        network=network,
        shared="" if by_cpu else _shared_text(board, rows),
        clock="CPU seconds of the process" if by_cpu else "Seconds",
        others=len(recorded.columns) - len(same),
    )


def _rows_of_one_machine(board: Board, rows: list[int]) -> list[int]:
    """Return the rows that ran on the machine (or machines) of most rows."""
    runs = board.runs.set_index(["column", "seed"])
    counted = runs[runs.index.isin(board.counting)]
    machines = counted.groupby("row")["machine"].agg(lambda names: str(sorted({*names}))).loc[rows]
    return [row for row in rows if machines[row] == machines.mode().iat[0]]


def pareto_rows(board: Board, seconds: Series) -> list[int]:
    """Return the rows, without ceilings, that no other row beats in both time and mean, cheapest first."""
    rows = [row for row in seconds.index if row in board.learners]
    return pareto_front(seconds[rows], board.sign * mean(board)["mean"][rows])


def _shared_text(board: Board, rows: list[int]) -> str:
    """Return how many runs shared the device with others: `3 of 12`; "" if none did."""
    runs = [board.rows[row].scores[column].runs[seed] for row in rows for column, seed in board.counting]
    shared = sum(run["hardware"].get("shared") is True for run in runs)
    return f"{shared} of {len(runs)}" if shared else ""

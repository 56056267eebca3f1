"""Mean of the test metric against training time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import DataFrame, MultiIndex

from llpbench.report import wording as words
from llpbench.report.boards import RUN, Board
from llpbench.report.leaderboard import costs, mean
from llpbench.report.plots import layout
from llpbench.report.plots.layout import LOOKS, Drawing
from llpbench.report.statistics import pareto_front


def time(board: Board, name: str) -> Iterator[Drawing]:
    """Draw mean against seconds of training, with the Pareto front.

    CPU seconds are used if all runs have recorded them, since other processes do not change these.
    Entries from other machines than most are skipped, because their times are not comparable.
    """
    recorded, cpu = costs(board), costs(board, "cpu_seconds_training")
    if recorded.empty:
        return
    if by_cpu := cpu.columns.equals(recorded.columns):
        recorded = cpu
    same = [n for n in _entries_of_one_machine(board, [*recorded.columns]) if n in board.learners]
    seconds = board.by_dataset(recorded[same].groupby(level=0).mean()).mean()
    scores = mean(board).loc[same].fillna({"std": 0.0})
    front = pareto_front(seconds, board.sign * scores["mean"])
    entries = [*dict.fromkeys([*layout.prominent(board, same, 3), *reversed(front)])][: layout.MOST_MARKS]
    if not entries:
        return
    names = layout.labels(board, longest=30)
    panels = layout.panels(1, height=3.2)
    (ax,) = panels.axes
    for entry, (colour, marker) in zip(sorted(entries, key=lambda entry: float(seconds[entry])), LOOKS, strict=False):
        value, std = scores.at[entry, "mean"], scores.at[entry, "std"]
        ax.errorbar(seconds[entry], value, std, color=colour, linewidth=1, zorder=2)
        ax.plot([seconds[entry]], [value], marker, color=colour, markersize=7, zorder=3, label=names[entry])
    ax.set_xscale("log")
    ax.margins(x=0.1, y=0.1)
    ax.set_xlim(ax.get_xlim())
    drawn = [entry for entry in front if entry in entries]
    if drawn:
        ends = [*seconds[drawn], ax.get_xlim()[1]]
        ax.step(ends, [*scores["mean"][drawn], scores["mean"][drawn[-1]]], where="post", color="0.45", lw=1, zorder=1)
    decades = np.log10(ax.get_xlim()[1] / ax.get_xlim()[0])
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,), numticks=9))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(
        xlabel=f"training time of a run ({'CPU ' if by_cpu else ''}seconds)", ylabel=f"mean {layout.metric_text(board)}"
    )
    layout.legend(panels.figure)
    facts = {entry: (names[entry], scores.at[entry, "mean"], words.seconds_text(seconds[entry])) for entry in entries}
    leader = next((entry for entry in board.ranked if entry in entries), entries[0])
    network = next((facts[entry] for entry in board.networks if entry in entries and entry != leader), None)
    yield layout.of_board(
        board,
        name,
        "time",
        panels.figure,
        leader=facts[leader],
        network=network,
        shared="" if by_cpu else _shared_text(board, entries),
        clock="CPU seconds of the process" if by_cpu else "Seconds",
        others=len(recorded.columns) - len(same),
    )


def _counted_runs(board: Board) -> DataFrame:
    """Return the runs that count."""
    return board.runs[MultiIndex.from_frame(board.runs[RUN]).isin(board.counting)]


def _entries_of_one_machine(board: Board, entries: list[int]) -> list[int]:
    """Return the entries that ran on the machine (or machines) of most entries."""
    by_entry = _counted_runs(board).groupby("entry")["machine"]
    machines = by_entry.agg(lambda names: str(sorted({*names}))).loc[entries]
    return [entry for entry in entries if machines[entry] == machines.mode().iat[0]]


def _shared_text(board: Board, entries: list[int]) -> str:
    """Return how many runs shared the device with others: `3 of 12`; "" if none did."""
    counted = _counted_runs(board)
    runs = counted["run"][counted["entry"].isin(entries)]
    shared = sum(board.records[run]["hardware"].get("shared") is True for run in runs)
    return f"{shared} of {len(runs)}" if shared else ""

"""Columns of leaderboards, such as mean, rank interval and ties: a registry of functions of a board.

Columns use the runs that count (`tabulate`) and the board's metric. A plugin adds a column with `register_column`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from pandas import DataFrame

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import fault
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import (
    FEWEST_DATASETS,
    FEWEST_SEEDS,
    REFERENCE,
    Board,
    Role,
    Summary,
    grouped_means,
    means_over_datasets,
    wide,
)
from llpbench.report.report_table import Field, Heading
from llpbench.results.frame import MACHINE

_DIGITS = 9

_DEVICE = MACHINE.index("device")

T = TypeVar("T")

Compute = Callable[[Board], DataFrame]
"""Function that returns the parts of a column by entry. Missing entries and NaN are unknown."""

Format = Callable[[Mapping[str, Any]], str | Sequence[str]]
"""Function that returns the text (or lines) of the parts of an entry."""


@dataclass(frozen=True)
class LeaderboardColumn:
    """Column of every leaderboard."""

    key: str
    """name in code and in `boards.csv`"""
    title: str
    """heading; `{metric}` and `{level}` are replaced by the board's metric and the confidence level"""
    parts: tuple[str, ...]
    """names of its numbers; the column is unknown where the first one is"""
    compute: Compute
    format: Format
    caption: str = ""
    """one sentence; those of built-in columns are in `templates/captions.j2`"""
    default: bool = True
    """whether the page shows it without a click"""
    numeric: bool = True

    def computed(self, board: Board) -> DataFrame:
        """Return its parts by entry. Raises `LLPBenchError` for an error in a plugin's code."""
        return self._call(lambda: self.compute(board).reindex(columns=self.parts))

    def _call(self, function: Callable[[], T]) -> T:
        """Return the result of a function. The error of a plugin becomes one line."""
        try:
            return function()
        except Exception as error:
            if self._is_built_in:
                raise
            file = getattr(sys.modules.get(self.compute.__module__), "__file__", None) or self.compute.__module__
            raise LLPBenchError(f"leaderboard column {self.key!r} ({file}) failed: {fault(error, file)}.") from error

    def explained(self, board: Board) -> str:
        """Return the caption."""
        return words.caption(f"column_{self.key}", board) if self._is_built_in else self.caption

    @property
    def _is_built_in(self) -> bool:
        return self.compute.__module__ == __name__

    def heading(self, board: Board) -> Heading:
        """Return the heading on a board."""
        return Heading(self.title.format(metric=board.metric.title, level=words.LEVEL), self.numeric, self.key)

    def fields(self, board: Board) -> list[Field]:
        """Return the texts of all entries of a board."""
        columns = standings(board)
        rows = zip(*(columns[self.key, part] for part in self.parts), strict=True)
        return [self._field(dict(zip(self.parts, row, strict=True))) for row in rows]

    def _field(self, parts: Mapping[str, Any]) -> Field:
        first = parts[self.parts[0]]
        if first != first or first in (None, ""):
            return Field((words.NOTHING,))
        text = self._call(lambda: self.format(parts))
        return Field((text,) if isinstance(text, str) else tuple(text))


def plain(value: Any) -> float | int | str | None:
    """Return a value for CSV: None for NaN, integers as they are, other numbers with six decimals."""
    if isinstance(value, str) or value is None or value != value:
        return None if value != value else value
    return int(value) if isinstance(value, int | np.integer) else round(float(value), 6)


COLUMNS: dict[str, LeaderboardColumn] = {}
"""All columns by key, in the order of the leaderboard."""

_CACHE: WeakKeyDictionary[Board, DataFrame] = WeakKeyDictionary()


def register_column(column: LeaderboardColumn) -> LeaderboardColumn:
    """Add a column to every leaderboard. Raises `LLPBenchError` for a key that is taken."""
    if column.key in COLUMNS:
        raise LLPBenchError(f"leaderboard column {column.key!r} is registered already. Choose another key.")
    COLUMNS[column.key] = column
    return column


def standings(board: Board) -> DataFrame:
    """Return all columns of the leaderboard, (key, part) by entry. Computed once per board."""
    table = _CACHE.get(board)
    if table is None or not {*COLUMNS} <= {*table.columns.get_level_values(0)}:
        parts = {
            (column.key, part): values[part].astype(object)
            for column in COLUMNS.values()
            for values in (column.computed(board),)
            for part in column.parts
        }
        table = _CACHE[board] = DataFrame(parts, index=board.entries.index)
    return table


def mean(board: Board, metric: str | None = None) -> DataFrame:
    """Return the mean over datasets and its standard deviation over seeds, of entries with every run that counts.

    Seeds of a dataset share its split at every bag size, so they are paired. Seeds of different datasets are
    independent, so their variances add.
    """
    return board.cached(f"mean {metric or board.metric.name}", lambda: _mean(board, metric))


def _mean(board: Board, metric: str | None) -> DataFrame:
    counted = board.counted(metric).dropna(axis="columns")
    if counted.empty or not len(counted):
        return DataFrame({"mean": [], "std": [], "n": []})
    paired = _paired(board, counted).groupby(level=0)
    stds = paired.std().round(_DIGITS + 3).reindex(board.datasets)
    spread = np.sqrt((stds**2).sum(skipna=False)) / len(stds)
    n = int(paired.size().reindex(board.datasets, fill_value=0).min())
    return DataFrame({"mean": means_over_datasets(counted, board.tasks["dataset"].tolist()), "std": spread, "n": n})


def _paired(board: Board, counted: DataFrame) -> DataFrame:
    """Return means over the tasks of a dataset, by (dataset, seed), for seeds that all of its tasks have."""
    tasks, seeds = (counted.index.get_level_values(level) for level in (0, 1))
    pairs = [*zip(board.of_task(tasks), seeds, strict=True)]
    number = Counter(board.of_task(tasks.unique()))
    numbers, means = Counter(pairs), grouped_means(counted, pairs)
    return means[[numbers[pair] == number[pair[0]] for pair in means.index]]


def blocks(board: Board, entries: Sequence[int] | None = None) -> DataFrame:
    """Return the values that tests and intervals treat as independent: blocks x entries, larger is better.

    Blocks are means of datasets. A single dataset has its seeds as blocks, if all of its tasks have them.
    """
    values = board.sign * (board.complete if entries is None else board.complete[entries])
    means = board.by_dataset(grouped_means(values)) if len(values) else values
    if len(means) == 1:
        seeds = _paired(board, values).droplevel(0)
        means = seeds if len(seeds) else means
    return means.round(_DIGITS)


def is_even(board: Board) -> bool:
    """Return whether `blocks` use every run that counts: tasks of a single dataset may have different seeds."""
    if len(board.datasets) > 1:
        return True
    seeds = board.counting.to_frame(index=False).groupby("task")["seed"]
    return len({tuple(of_task) for _, of_task in seeds}) == 1


def reference(board: Board, entry: int, role: Role) -> int | None:
    """Return the floor or ceiling of an entry's encoder, in its precision if possible, else in float32.

    Entries without an encoder have the reference of the board's first encoder.
    """
    encoders, precisions = board.entries["encoder"].tolist(), board.entries["precision"].tolist()
    encoder = encoders[entry] or next(iter(board.encoders), None)
    plain = board.entries.index[board.entries["is_plain"] & (board.entries["role"] == role)]

    def order(other: int) -> tuple[bool, bool]:
        return precisions[other] != precisions[entry], precisions[other] != REFERENCE

    return min((other for other in plain if encoders[other] == encoder), key=order, default=None)


def _rank_intervals(board: Board) -> DataFrame:
    independent = blocks(board, board.ranked)
    if len(independent) < 2 or len(board.ranked) > statistics.MOST_METHODS:
        return DataFrame(columns=["low", "high"])
    low, high = statistics.rank_intervals(independent)
    return DataFrame({"low": low, "high": high}, index=independent.columns)


def is_tested(board: Board) -> bool:
    """Return whether there are enough datasets and seeds to test differences."""
    return len(board.datasets) >= FEWEST_DATASETS and fewest_seeds(board) >= FEWEST_SEEDS


def fewest_seeds(board: Board) -> int:
    """Return the smallest number of seeds of a task."""
    tasks = board.counting.get_level_values(0)
    return int(tasks.value_counts().min()) if len(tasks) else 0


def corrected_p(board: Board) -> DataFrame | None:
    """Return p values of all pairs of ranked entries (`statistics.paired_p`); None if differences are not tested.

    Letters, the main finding and figures call two entries significantly different if their p is below 0.05.
    """
    if not board.ranked or not is_tested(board) or len(board.ranked) > statistics.MOST_METHODS:
        return None

    def compute() -> DataFrame:
        independent = blocks(board, board.ranked)
        return DataFrame(statistics.paired_p(independent), independent.columns, independent.columns)

    return board.cached("corrected p", compute)


def differing(board: Board) -> list[int] | None:
    """Return the ranked entries that differ significantly from the first one; None if differences are not tested."""
    p = corrected_p(board)
    return None if p is None else [*p.index[p[board.ranked[0]] < 1 - statistics.CONFIDENCE]]


def _ties(board: Board) -> DataFrame:
    """Return letters; entries that share one do not differ significantly."""
    p = corrected_p(board)
    return DataFrame(columns=[""]) if p is None else DataFrame({"": statistics.letters(p.to_numpy())}, index=p.index)


def _against_floor(board: Board) -> DataFrame:
    """Return the difference of each entry from the floor of its encoder. The floor itself has none."""
    gains, means = {}, board.task_means
    independent, overall, even = blocks(board), mean(board)["mean"], is_even(board)
    for entry in board.complete:
        floor = reference(board, entry, "floor")
        if floor is None or floor == entry or floor not in board.complete:
            continue
        low, high = statistics.interval(independent[entry] - independent[floor]) if even else (np.nan, np.nan)
        gains[entry] = {
            "points": board.sign * (overall[entry] - overall[floor]),
            "low": low,
            "high": high,
            "ahead": int((board.sign * (means[entry] - means[floor]) > 0).sum()),
            "of": len(means),
        }
    return DataFrame.from_dict(gains, orient="index")


def _seconds(board: Board) -> DataFrame:
    """Return seconds of training, averaged over datasets, and the share of runs on a GPU if others ran on a CPU."""
    seconds = board.by_dataset(grouped_means(costs(board))).mean()
    devices = {machine: float(json.loads(machine)[_DEVICE] == "cuda") for machine in board.runs["machine"].unique()}
    used = wide(board.runs.assign(value=board.runs["machine"].map(devices)), len(board.entries))
    share = used.reindex(index=board.counting, columns=seconds.index).mean()
    return DataFrame({"": seconds, "gpu": share if 0 < share.sum() < len(share) else 0.0})


def costs(board: Board, clock: str = "seconds_training") -> DataFrame:
    """Return seconds of training of the runs that count, (task, seed) x entries, if all of them were recorded."""
    seconds = wide(board.runs.assign(value=board.runs[clock]), len(board.entries))
    return seconds.reindex(index=board.counting, columns=board.complete.columns).dropna(axis="columns")


def _mean_ranks(board: Board) -> DataFrame:
    values = board.complete[board.ranked]
    datasets = board.by_dataset(grouped_means(values)) if len(values) else values
    ranks = (board.sign * datasets).round(_DIGITS).rank(axis="columns", ascending=False)
    return DataFrame({"": ranks.mean()})


def spans(board: Board, entry: int) -> DataFrame:
    """Return floor, ceiling and score of an entry, for tasks that count and have a gap.

    A task has a gap if floor and ceiling differ by more than one standard deviation of either. Tasks that lack a run of
    floor, ceiling or entry are skipped.
    """
    floor, ceiling = reference(board, entry, "floor"), reference(board, entry, "ceiling")
    if floor is None or ceiling is None:
        return DataFrame(columns=["floor", "ceiling", "score"])
    means, stds = board.task_means, board.counted()[[floor, ceiling]].groupby(level=0).std()
    tasks = DataFrame({"floor": means[floor], "ceiling": means[ceiling], "score": means[entry]}).dropna()
    gaps = board.sign * (tasks["ceiling"] - tasks["floor"])
    return tasks[gaps > stds.max(axis="columns").reindex(tasks.index).fillna(0.0)]


def _gap(board: Board) -> DataFrame:
    """Return 100 Σ(score - floor) / Σ(ceiling - floor) over the tasks with a gap.

    A mean of ratios would depend mostly on tasks with a small gap.
    """
    gaps, even = {}, is_even(board)
    for entry in board.complete:
        floor, ceiling = reference(board, entry, "floor"), reference(board, entry, "ceiling")
        if floor not in board.complete or ceiling not in board.complete or (tasks := spans(board, entry)).empty:
            continue
        has_interval = even and entry not in (floor, ceiling)  # those two are 0 and 100 by definition
        low, high = _gap_interval(board, entry, floor, ceiling, [*tasks.index]) if has_interval else (np.nan, np.nan)
        sums = tasks.sum()
        percent = 100 * (sums["score"] - sums["floor"]) / (sums["ceiling"] - sums["floor"])
        gaps[entry] = {"percent": percent, "low": low, "high": high, "columns": len(tasks)}
    return DataFrame.from_dict(gaps, orient="index")


def _gap_interval(
    board: Board, entry: int, floor: int | None, ceiling: int | None, tasks: Sequence[int]
) -> tuple[float, float]:
    """Return the interval of the closed gap over datasets, or over the seeds of a single dataset."""
    runs = board.complete.loc[tasks]
    gains = DataFrame({"gained": runs[entry] - runs[floor], "whole": runs[ceiling] - runs[floor]})
    if len({*board.of_task(tasks)}) > 1:
        by_task = gains.groupby(level=0).mean()
        independent = by_task.groupby(board.of_task(by_task.index)).sum()
    else:
        seeds = gains.groupby(level="seed")
        independent = seeds.sum()[seeds.size() == len(tasks)]
    low, high = statistics.ratio_interval(independent.itertuples(index=False, name=None))
    return 100 * low, 100 * high


def _wins(board: Board) -> DataFrame:
    """Return the percentage of comparisons (run, other ranked entry) that an entry wins. Ties count half."""
    values, number = board.sign * board.complete[board.ranked], len(board.ranked)
    if number < 2:
        return DataFrame(columns=[""])
    shares = (number - values.rank(axis="columns", ascending=False)) / (number - 1)
    return DataFrame({"": 100 * grouped_means(shares).mean()})


def _coverage(board: Board) -> DataFrame:
    """Return the numbers of runs with a score, failed, expected and stale."""
    sums = board.scores.groupby(level="entry")[["values", "failed", "expected", "stale"]].sum()
    return sums.set_axis(["done", "failed", "expected", words.STALE], axis="columns")


def _mean_text(parts: Mapping[str, Any]) -> Sequence[str]:
    std = parts["std"] if isfinite(parts["std"]) else None
    if not parts["n"]:
        return f"{parts['mean']:.2f}", "no seed in common"
    return (words.summary_text(Summary(parts["mean"], std, parts["n"])),)


def _floor_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return interval_of(parts, "points", 1, "+"), f"ahead in {parts['ahead']}/{parts['of']}"


def interval_of(parts: Mapping[str, Any], name: str, digits: int, sign: str = "") -> str:
    """Return the text of a part with its interval, if there is one: `+1.9 [-3.2, 7.0]`."""
    ends = (parts["low"], parts["high"]) if isfinite(parts["low"]) else None
    return words.interval_text(parts[name], ends, digits, sign)


def _seconds_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return (words.seconds_text(parts[""]) + ("*" if parts["gpu"] else ""),)


def _coverage_text(parts: Mapping[str, Any]) -> Sequence[str]:
    lacking = [f"{parts[what]} {what}" for what in ("failed", words.STALE) if parts[what]]
    return f"{parts['done']}/{parts['expected']}", *lacking


for _column in (
    LeaderboardColumn("mean", "mean {metric}", ("mean", "std", "n"), mean, _mean_text),
    LeaderboardColumn(
        "interval",
        "{level} CI of rank",
        ("low", "high"),
        _rank_intervals,
        lambda parts: f"{parts['low']}–{parts['high']}",
    ),
    LeaderboardColumn("tie", "tie", ("",), _ties, lambda parts: str(parts[""]), numeric=False),
    LeaderboardColumn("floor", "against floor", ("points", "low", "high", "ahead", "of"), _against_floor, _floor_text),
    LeaderboardColumn("seconds", "seconds", ("", "gpu"), _seconds, _seconds_text),
    LeaderboardColumn("mean_rank", "mean rank", ("",), _mean_ranks, lambda parts: f"{parts['']:.1f}", default=False),
    LeaderboardColumn(
        "gap",
        "gap closed",
        ("percent", "low", "high", "columns"),
        _gap,
        lambda parts: interval_of(parts, "percent", 0),
        default=False,
    ),
    LeaderboardColumn("wins", "wins", ("",), _wins, lambda parts: f"{parts['']:.0f}", default=False),
    LeaderboardColumn(
        "coverage", "coverage", ("done", "failed", "expected", words.STALE), _coverage, _coverage_text, default=False
    ),
):
    register_column(_column)

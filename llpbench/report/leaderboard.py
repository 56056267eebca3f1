"""Columns of leaderboards (mean, interval of the rank, ties, ...): a registry, each column a function of the board.

Columns are computed on the runs that count (`tabulate`), by the board's metric. A plugin adds a column with
`register_column`: its `compute` gives the numbers by place of the row, its `format` a text of them.
"""

from __future__ import annotations

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
from llpbench.report.boards import FEWEST_DATASETS, FEWEST_SEEDS, REFERENCE, Board, Role, Summary, means_over_datasets
from llpbench.report.report_table import SCORE, Field, Heading, Value

MOST_COMPARED = 40
"""Maximum number of rows that are compared pair by pair: nobody could read more, and thousands would take hours."""

_DIGITS = 9

T = TypeVar("T")

Compute = Callable[[Board], DataFrame]
"""Function that returns parts as columns, by place of the row. Missing rows and NaN are unknown."""


@dataclass(frozen=True)
class LeaderboardColumn:
    """A column of every leaderboard."""

    key: str
    """name that selects the column"""
    title: str
    """heading; `{metric}` and `{level}` become the board's metric and the confidence level"""
    parts: tuple[str, ...]
    """names of its numbers; the first one sorts the column"""
    compute: Compute
    format: Callable[[Mapping[str, Any]], str | Sequence[str]]
    """a text, or lines, of the parts of a row"""
    caption: str = ""
    """one sentence; of a built-in column it is a block of `templates/captions.j2`"""
    default: bool = True
    """whether the page shows it without being asked"""
    numeric: bool = True

    def computed(self, board: Board) -> DataFrame:
        """Parts as columns, by place of the row. Raises `LLPBenchError` for an error in a plugin's code."""
        return self._own(lambda: self.compute(board).reindex(columns=self.parts))

    def _own(self, call: Callable[[], T]) -> T:
        """Return the result of a call of `compute` or `format`; an error of a plugin becomes one line."""
        try:
            return call()
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
        """Return the heading."""
        text = self.title.format(metric=board.metric.title, level=words.LEVEL)
        return Heading(text, self.parts, self.numeric, self.key)

    def fields(self, board: Board) -> list[Field]:
        """Return a field for each row of a board."""
        found = standings(board)
        rows = zip(*(found[self.key, part] for part in self.parts), strict=True)
        return [self._field(dict(zip(self.parts, row, strict=True))) for row in rows]

    def _field(self, parts: Mapping[str, Any]) -> Field:
        if parts[self.parts[0]] != parts[self.parts[0]] or parts[self.parts[0]] in (None, ""):
            return Field((words.NOTHING,), {"n": 0} if self.parts == SCORE else {})
        shown = self._own(lambda: self.format(parts))
        lines = (shown,) if isinstance(shown, str) else tuple(shown)
        return Field(lines, {name: plain(value) for name, value in parts.items()})


def plain(value: Any) -> Value:
    """Return a number for CSV and JSON: None for NaN, an integer for counts, otherwise six digits."""
    if isinstance(value, str) or value is None or value != value:
        return None if value != value else value
    return int(value) if isinstance(value, int | np.integer) else round(float(value), 6)


COLUMNS: dict[str, LeaderboardColumn] = {}
"""Every column by key, in the order of the leaderboard."""

_KNOWN: WeakKeyDictionary[Board, DataFrame] = WeakKeyDictionary()


def register_column(column: LeaderboardColumn) -> LeaderboardColumn:
    """Add a column to every leaderboard. Raises `LLPBenchError` for a key that is taken."""
    if column.key in COLUMNS:
        raise LLPBenchError(f"leaderboard column {column.key!r} is registered already. Choose another key.")
    COLUMNS[column.key] = column
    return column


def standings(board: Board) -> DataFrame:
    """Return (key, part) by place of the row: computed once per board, for pages, plots and terminal."""
    found = _KNOWN.get(board)
    if found is None or not {*COLUMNS} <= {*found.columns.get_level_values(0)}:
        parts = {
            (column.key, part): values[part].astype(object)
            for column in COLUMNS.values()
            for values in (column.computed(board),)
            for part in column.parts
        }
        found = _KNOWN[board] = DataFrame(parts, index=range(len(board.rows)))
    return found


def mean(board: Board, metric: str | None = None) -> DataFrame:
    """Mean of a metric over datasets and its standard deviation over seeds, of rows that have every run that counts.

    Seeds of a dataset share its split, whatever the bag size, so they are paired within it. Those of different
    datasets share nothing: their variances add.
    """
    counted = board.counted(metric).dropna(axis="columns")
    if counted.empty or not len(counted):
        return DataFrame({"mean": [], "std": [], "n": []})
    paired = _paired(board, counted).groupby(level=0)
    stds = paired.std().round(_DIGITS + 3).reindex(board.datasets)
    spread = np.sqrt((stds**2).sum(skipna=False)) / len(stds)
    n = int(paired.size().reindex(board.datasets, fill_value=0).min())
    return DataFrame(
        {"mean": means_over_datasets(counted, [each.dataset for each in board.columns]), "std": spread, "n": n}
    )


def _paired(board: Board, counted: DataFrame) -> DataFrame:
    """Means over the columns of each dataset, by (dataset, seed): of seeds that all of its columns have."""
    columns, seeds = (counted.index.get_level_values(level) for level in (0, 1))
    groups = counted.groupby([[board.columns[column].dataset for column in columns], seeds])
    columns_of = Counter(board.columns[column].dataset for column in columns.unique())
    whole = [number == columns_of[dataset] for (dataset, _), number in groups.size().items()]
    return groups.mean()[whole]


def blocks(board: Board, rows: Sequence[int] | None = None) -> DataFrame:
    """Blocks that intervals and tests treat as independent, for rows that have every run that counts.

    Several datasets: their means. One: its seeds, as far as all of its columns have them. More is better.
    """
    values = board.sign * (board.complete if rows is None else board.complete[rows])
    means = board.by_dataset(values.groupby(level=0).mean()) if len(values) else values
    if len(means) == 1:
        seeds = _paired(board, values).droplevel(0)
        means = seeds if len(seeds) else means
    return means.round(_DIGITS)


def is_even(board: Board) -> bool:
    """Whether intervals are of all runs that count: of one dataset they go by the seeds that all its columns have."""
    if len(board.datasets) > 1:
        return True
    seeds = board.counting.to_frame(index=False)
    return len({tuple(own) for _, own in seeds.groupby("column")["seed"]}) == 1


def reference(board: Board, row: int, role: Role) -> int | None:
    """The floor or ceiling of a row's encoder: in its precision if there is one, else in float32."""
    own = board.rows[row]
    encoder = own.contender.encoder or next(iter(board.encoders), None)
    found = [
        place
        for place, other in enumerate(board.rows)
        if other.contender.role == role and other.is_plain and other.contender.encoder == encoder
    ]

    def order(place: int) -> tuple[bool, bool]:
        precision = board.rows[place].precision
        return precision != own.precision, precision != REFERENCE

    return min(found, key=order, default=None)


def _rank_intervals(board: Board) -> DataFrame:
    found = blocks(board, board.ranked)
    if len(found) < 2 or len(board.ranked) > statistics.MOST_METHODS:
        return DataFrame(columns=["low", "high"])
    low, high = statistics.rank_intervals(found)
    return DataFrame({"low": low, "high": high}, index=found.columns)


def is_tested(board: Board) -> bool:
    """Return whether datasets and seeds suffice for letters of a test: with fewer they contradict the intervals."""
    return len(board.datasets) >= FEWEST_DATASETS and fewest_seeds(board) >= FEWEST_SEEDS


def fewest_seeds(board: Board) -> int:
    """Return the number of seeds of the column that has fewest."""
    columns = board.counting.get_level_values(0)
    return int(columns.value_counts().min()) if len(columns) else 0


def _ties(board: Board) -> DataFrame:
    """Letters of rows that do not differ significantly; none where there is too little to test."""
    found = blocks(board, board.ranked)
    if not is_tested(board) or len(board.ranked) > statistics.MOST_METHODS:
        return DataFrame(columns=[""])
    return DataFrame({"": statistics.letters(statistics.paired_p(found))}, index=found.columns)


def _against_floor(board: Board) -> DataFrame:
    """How much better a row is than the floor of its encoder, but for that floor."""
    found, means = {}, board.column_means
    independent, overall, even = blocks(board), mean(board)["mean"], is_even(board)
    for row in board.complete:
        floor = reference(board, row, "floor")
        if floor is None or floor == row or floor not in board.complete:
            continue
        low, high = statistics.interval(independent[row] - independent[floor]) if even else (np.nan, np.nan)
        found[row] = {
            "points": board.sign * (overall[row] - overall[floor]),
            "low": low,
            "high": high,
            "ahead": int((board.sign * (means[row] - means[floor]) > 0).sum()),
            "of": len(means),
        }
    return DataFrame.from_dict(found, orient="index")


def _seconds(board: Board) -> DataFrame:
    """Seconds of training; unknown for rows whose runs do not record it."""
    return DataFrame({"": board.by_dataset(costs(board).groupby(level=0).mean()).mean()})


def costs(board: Board) -> DataFrame:
    """Seconds of training of every run that counts, for rows that have completed all of them and recorded it."""
    seconds = board.runs.pivot(index=["column", "seed"], columns="row", values="seconds_training")
    return seconds.reindex(index=board.counting, columns=board.complete.columns).dropna(axis="columns")


def _mean_ranks(board: Board) -> DataFrame:
    values = board.complete[board.ranked]
    datasets = board.by_dataset(values.groupby(level=0).mean()) if len(values) else values
    ranks = (board.sign * datasets).round(_DIGITS).rank(axis="columns", ascending=False)
    return DataFrame({"": ranks.mean()})


def spans(board: Board, row: int) -> DataFrame:
    """Floor, ceiling and score of a row, by column that counts and has a gap.

    Columns where floor and ceiling are closer than one standard deviation of either are left out: there is no gap to
    close. So are those that lack a run of any of the three. The floor and the ceiling are those of the row's encoder,
    not pretrained; for rows without an encoder those of the board's first encoder.
    """
    floor, ceiling = reference(board, row, "floor"), reference(board, row, "ceiling")
    if floor is None or ceiling is None:
        return DataFrame(columns=["floor", "ceiling", "score"])
    means, stds = board.column_means, board.counted()[[floor, ceiling]].groupby(level=0).std()
    found = DataFrame({"floor": means[floor], "ceiling": means[ceiling], "score": means[row]}).dropna()
    apart = board.sign * (found["ceiling"] - found["floor"])
    return found[apart > stds.max(axis="columns").reindex(found.index).fillna(0.0)]


def _gap(board: Board) -> DataFrame:
    """Over the columns that have a gap: the sum of (score - floor) over the sum of (ceiling - floor), in percent.

    A mean of ratios would be ruled by columns where floor and ceiling are close.
    """
    found, even = {}, is_even(board)
    for row in board.complete:
        floor, ceiling = reference(board, row, "floor"), reference(board, row, "ceiling")
        if floor not in board.complete or ceiling not in board.complete or (own := spans(board, row)).empty:
            continue
        low, high = _gap_interval(board, row, (floor, ceiling), [*own.index]) if even else (np.nan, np.nan)
        sums = own.sum()
        percent = 100 * (sums["score"] - sums["floor"]) / (sums["ceiling"] - sums["floor"])
        found[row] = {"percent": percent, "low": low, "high": high, "columns": len(own)}
    return DataFrame.from_dict(found, orient="index")


def _gap_interval(
    board: Board, row: int, marks: tuple[int | None, int | None], columns: Sequence[int]
) -> tuple[float, float]:
    """Over datasets; of a single one over its seeds. None of floor and ceiling, which the gap is made of."""
    if row in marks:
        return np.nan, np.nan
    floor, ceiling = marks
    own = board.complete.loc[columns]
    gains = DataFrame({"gained": own[row] - own[floor], "whole": own[ceiling] - own[floor]})
    datasets = {board.columns[column].dataset for column in columns}
    if len(datasets) > 1:
        by_column = gains.groupby(level=0).mean()
        by_block = by_column.groupby([board.columns[column].dataset for column in by_column.index]).sum()
    else:
        seeds = gains.groupby(level="seed")
        by_block = seeds.sum()[seeds.size() == len(columns)]
    low, high = statistics.ratio_interval(by_block.itertuples(index=False, name=None))
    return 100 * low, 100 * high


def _wins(board: Board) -> DataFrame:
    """Percentage of comparisons with other ranked rows that a row wins, from its ranks in runs."""
    values, number = board.sign * board.complete[board.ranked], len(board.ranked)
    if number < 2:
        return DataFrame(columns=[""])
    shares = (number - values.rank(axis="columns", ascending=False)) / (number - 1)
    return DataFrame({"": 100 * shares.groupby(level=0).mean().mean()})


def _coverage(board: Board) -> DataFrame:
    """Number of runs in all columns: with a score, failed, expected of a complete row, and stale."""
    return DataFrame(
        {
            "done": sum(len(score.values) for score in row.scores),
            "failed": sum(len(score.failures) for score in row.scores),
            "expected": sum(score.expected for score in row.scores),
            words.STALE: sum(len(score.stale) for score in row.scores),
        }
        for row in board.rows
    )


def _mean_text(parts: Mapping[str, Any]) -> Sequence[str]:
    std = parts["std"] if isfinite(parts["std"]) else None
    if not parts["n"]:
        return f"{parts['mean']:.2f}", "no seed in common"
    return (words.summary_text(Summary(parts["mean"], std, parts["n"])),)


def _floor_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return interval_of(parts, "points", 1, "+"), f"ahead in {parts['ahead']}/{parts['of']}"


def interval_of(parts: Mapping[str, Any], name: str, digits: int, sign: str = "") -> str:
    """`+1.9 [-3.2, 7.0]` of a part and its ends, where these are known."""
    ends = (parts["low"], parts["high"]) if isfinite(parts["low"]) else None
    return words.interval_text(parts[name], ends, digits, sign)


def _coverage_text(parts: Mapping[str, Any]) -> Sequence[str]:
    lacking = [f"{parts[what]} {what}" for what in ("failed", words.STALE) if parts[what]]
    return f"{parts['done']}/{parts['expected']}", *lacking


for _column in (
    LeaderboardColumn("mean", "mean {metric}", SCORE, mean, _mean_text),
    LeaderboardColumn(
        "interval", "{level} of rank", ("low", "high"), _rank_intervals, lambda parts: f"{parts['low']}–{parts['high']}"
    ),
    LeaderboardColumn("tie", "tie", ("",), _ties, lambda parts: str(parts[""]), numeric=False),
    LeaderboardColumn("floor", "against floor", ("points", "low", "high", "ahead", "of"), _against_floor, _floor_text),
    LeaderboardColumn("seconds", "seconds", ("",), _seconds, lambda parts: words.seconds_text(parts[""])),
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


def compared(board: Board) -> list[int]:
    """The ranked rows that are compared pair by pair: the first `MOST_COMPARED`."""
    return board.ranked[:MOST_COMPARED]


def ranked_dataset_means(board: Board) -> DataFrame:
    """Dataset means of the ranked rows; more is better."""
    values = board.sign * board.complete[board.ranked]
    return board.by_dataset(values.groupby(level=0).mean()).round(_DIGITS)

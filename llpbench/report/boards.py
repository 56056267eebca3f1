"""Leaderboards as values, independent of how they are shown.

A *board* compares methods under one criterion, bagging and protocol. Its columns are pairs of dataset and bag size, its
rows are methods with their encoder, pretraining and configuration. A *score* is the result of a row in a column: all
seeds of one benchmark cell. Percentages are times 100, as they are shown.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from pandas import DataFrame, Index, MultiIndex, RangeIndex, Series

from llpbench.core.criteria import METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.report.origin import Origin, device
from llpbench.results.frame import shown

T = TypeVar("T")

Role = Literal["ceiling", "", "floor"]
Mark = Literal["ceiling", "supervised", "floor", ""]

HEADLINE = "auc"
"""Default test metric of leaderboards."""

FEWEST_BAGS = 5
"""Smallest number of validation bags from which a coarse criterion can choose an epoch."""

REFERENCE = "float32"
"""Default precision of products."""

FEW_BAGS = "†"
"""Mark of columns with fewer than `FEWEST_BAGS` validation bags."""

FEWEST_DATASETS = 6
"""Smallest number of datasets for tests: with fewer, a sign test is never significant at 0.05."""

FEWEST_SEEDS = 3
"""Smallest number of seeds for tests."""

RUN = ["column", "seed"]
"""Index of a run within a row."""

_DIGITS = 9
"""Decimals to which means are compared, because sums depend on the order of additions."""

ColumnKey = tuple[str, int | None, str]
"""Dataset, bag size (None if the bagging decides the sizes) and natural key (usually "")."""


class Summary(NamedTuple):
    """Summary of a metric over seeds."""

    mean: float
    std: float | None
    """sample standard deviation (n - 1); None for a single seed"""
    n: int


class Column(NamedTuple):
    """Column of a board: a dataset and a bag size."""

    dataset: str
    bag_size: int | None
    """None if the bagging decides the sizes of its bags"""
    seeds: tuple[int, ...]
    """all seeds with a run in this column, ascending"""
    sizes: tuple[int, float, int] | None = None
    """smallest, median and largest number of rows in a training bag; None if unknown"""
    validation: tuple[int, int] | None = None
    """smallest and largest number of validation bags over seeds; None if unknown"""
    classes: int | None = None
    """number of classes; None if unknown"""
    counts: bool = True
    """whether means, ranks and tests use it: coarse criteria need `FEWEST_BAGS` validation bags"""
    extra: frozenset[int] = frozenset()
    """seeds that less than half of the methods have; a score is complete without them"""
    by: str = ""
    """natural key that defines the bags, such as `native-country+education`"""

    @property
    def key(self) -> ColumnKey:
        """Identifier of the column within its board."""
        return self.dataset, self.bag_size, self.by

    @property
    def order(self) -> tuple[str, int, str]:
        """Key by which columns are sorted; bags of their own sizes come first."""
        return self.dataset, self.bag_size or 0, self.by

    @property
    def unequal(self) -> bool:
        """Whether its bags differ in size."""
        return self.sizes is not None and self.sizes[0] != self.sizes[2]

    @property
    def bags(self) -> str:
        """Bags in words: `256`, `1–9–11,660` (smallest, median, largest) or `by zipcode`."""
        if self.by:
            return f"by {self.by.replace('+', ' and ')}"
        if self.sizes is not None and self.unequal:
            least, middle, most = self.sizes
            return f"{least:,}–{middle:,.6g}–{most:,}"
        return str(self.bag_size or (self.sizes[0] if self.sizes else "unknown sizes"))

    @property
    def title(self) -> str:
        """Name in text, such as `adult 256`."""
        return f"{self.dataset} {self.bags}"

    @property
    def heading(self) -> str:
        """Name in headings, marked if the column does not count."""
        return self.title if self.counts else f"{self.title} {FEW_BAGS}"


class Contender(NamedTuple):
    """Method with its encoder, pretraining and configuration: what a row of a board compares."""

    method: str
    encoder: str | None
    """None for direct methods"""
    pretraining: str
    configuration: str
    """hyperparameters that differ from other rows of the method, or how they were tuned; usually "" """
    kind: str
    role: Role
    reference: str
    tuned: bool = False
    """whether a search chose the configuration, by the board's criterion and for each column"""

    @property
    def label(self) -> str:
        """Unique name on its board, such as `dllp (mlp, bag, weight=0.1)`."""
        pretraining = self.pretraining if self.pretraining != "none" else ""
        configuration = self.configuration.replace('numbers="scores"', "normal scores")
        details = ", ".join(filter(None, (self.encoder, pretraining, configuration)))
        return f"{self.method} ({details})" if details else self.method


class Score(NamedTuple):
    """All seeds of a row in a column. An expected seed has succeeded, failed or is missing."""

    cell: str | None = None
    """id of the benchmark cell; None without runs"""
    values: Mapping[int, float] = {}
    """finite values of the board's metric by seed"""
    failures: Mapping[int, str] = {}
    """reason by seed"""
    missing: tuple[int, ...] = ()
    """expected seeds without a run"""
    stale: Mapping[int, str] = {}
    """what has changed since the run (or its search), by seed"""
    runs: Mapping[int, Record] = {}
    """records by seed, including failed runs"""
    tuning: str | None = None
    """id of the search that chose the cell; None if there is none"""
    uncomputed: tuple[int, ...] = ()
    """seeds of successful runs that did not compute the metric, such as runs that are older than it"""

    @property
    def succeeded(self) -> tuple[int, ...]:
        """Seeds of successful runs."""
        return tuple(seed for seed in self.runs if seed not in self.failures)

    @property
    def expected(self) -> int:
        """Number of runs of a complete score."""
        return len(self.runs) + len(self.missing)

    @property
    def headline(self) -> Summary | None:
        """Summary of the board's metric; None without a value."""
        return summarise([*self.values.values()])

    @property
    def undefined(self) -> tuple[int, ...]:
        """Seeds of successful runs that computed the metric without a finite value."""
        return tuple(seed for seed in self.succeeded if seed not in self.values and seed not in self.uncomputed)


@dataclass(frozen=True)
class Row:
    """One contender in every column of a board."""

    contender: Contender
    scores: tuple[Score, ...]
    """one per column"""
    rank: int | None = None
    """None for methods trained on labels, and for rows that lack a run that counts"""
    mark: Mark = ""
    """`ceiling` is the 100 % of gaps; other methods trained on labels are `supervised`"""
    is_default: bool = True
    """whether its hyperparameters are the method's defaults, without a search"""
    ensemble: int = 1
    """number of averaged networks per seed"""
    precision: str = REFERENCE
    """precision of products"""

    @property
    def is_plain(self) -> bool:
        """Whether it is a single default network without pretraining, like floors and ceilings."""
        return self.contender.pretraining == "none" and self.is_default and self.ensemble == 1


@dataclass(frozen=True, eq=False)
class Board:
    """Comparable rows."""

    criterion: Criterion
    bagging: str
    """with the number of training bags if it is limited (`cell.bagging_text`)"""
    protocol: Mapping[str, Any] | None
    """limits of training (`cell.Protocol`); None if all methods are without epochs"""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    """in order: methods trained on labels, ranked rows, unranked rows"""
    runs: DataFrame
    """its part of the tidy table, with the positions of `row` and `column`"""
    counting: MultiIndex
    """runs (column, seed) that ranks and means use"""
    metric: Metric = METRICS[HEADLINE]
    failures: tuple[str, ...] = ()
    """one line per row, column and reason"""
    without_value: tuple[str, ...] = ()
    """one line per row and column, and one on runs that are older than the metric"""
    surprises: tuple[str, ...] = ()
    """one line per suspicious result"""
    stale: tuple[str, ...] = ()
    """one line per row and changed part of the code"""
    max_bags: int | None = None
    """limit of training bags; None without a limit"""
    differences: tuple[str, ...] = ()
    """one line per column on how much its bags differ"""

    def __repr__(self) -> str:
        rows, columns = plural(len(self.rows), "method"), plural(len(self.columns), "column")
        return f"<board by {self.criterion.name}, {self.bagging}: {rows}, {columns}>"

    @property
    def sign(self) -> int:
        """Sign by which a larger metric is better: 1 or -1."""
        return 1 if self.metric.maximise else -1

    @property
    def hardware(self) -> tuple[str, ...]:
        """Devices of its runs, such as `NVIDIA H200 (cuda)`, sorted."""
        runs = (run for row in self.rows for score in row.scores for run in score.runs.values())
        return tuple(sorted({device(run["hardware"]) for run in runs}))

    @property
    def uses_both(self) -> bool:
        """Whether some runs used a GPU and others a CPU."""
        return len({name.endswith("(cuda)") for name in self.hardware}) > 1

    @property
    def encoders(self) -> tuple[str, ...]:
        """Encoders of its rows, sorted."""
        return tuple(sorted({row.contender.encoder for row in self.rows if row.contender.encoder}))

    @property
    def ranked(self) -> list[int]:
        """Positions of the ranked rows, best first."""
        return [place for place, row in enumerate(self.rows) if row.rank is not None]

    @property
    def learners(self) -> list[int]:
        """Positions of the rows that are not trained on labels of rows."""
        return [place for place, row in enumerate(self.rows) if row.contender.role != "ceiling"]

    @cached_property
    def counting_columns(self) -> list[int]:
        """Positions of the columns with a run that counts."""
        return sorted(set(self.counting.get_level_values(0)))

    @property
    def datasets(self) -> list[str]:
        """Datasets of the columns that count, sorted."""
        return sorted({self.columns[place].dataset for place in self.counting_columns})

    def values(self, metric: str | None = None) -> DataFrame:
        """Return a test metric as it is shown: runs (column, seed) x rows."""
        name = metric or self.metric.name
        return self.cached(
            f"values {name}",
            lambda: wide(self.runs[[*RUN, "row"]].assign(value=shown(self.runs, name)), len(self.rows)),
        )

    def counted(self, metric: str | None = None) -> DataFrame:
        """Return a test metric of the runs that count: (column, seed) x rows."""
        name = metric or self.metric.name
        return self.cached(f"counted {name}", lambda: self.values(name).reindex(self.counting))

    def summary(self, row: int, column: int, metric: str) -> Summary | None:
        """Return the summary of a test metric over all seeds; None without a value."""
        return self.cached(f"summaries {metric}", lambda: _summaries(self.values(metric))).get((row, column))

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """Return a value that is computed once: pages, plots and terminal need the same."""
        cache: dict[str, T] = self.__dict__.setdefault("_cache", {})
        if key not in cache:
            cache[key] = compute()
        return cache[key]

    @cached_property
    def complete(self) -> DataFrame:
        """Board's metric of the rows that have every run that counts: (column, seed) x rows."""
        counted = self.counted()
        return counted.dropna(axis="columns") if len(counted) else counted.iloc[:, :0]

    @cached_property
    def column_means(self) -> DataFrame:
        """Means over the runs that count: columns x rows. NaN for a row that lacks one of them."""
        return grouped_means(self.counted(), skip_unknown=False)

    def by_dataset(self, by_column: DataFrame) -> DataFrame:
        """Return means over the columns of each dataset."""
        names = [self.columns[column].dataset for column in by_column.index]
        return grouped_means(by_column, names) if names else by_column

    @cached_property
    def leaders(self) -> frozenset[tuple[int, int]]:
        """Positions (row, column) of the best score of each column, and of all within one standard deviation of it.

        Ceilings and scores that lack a run are skipped. A best score over a single seed has no standard deviation, so
        its column has no leader.
        """
        counted = (self.sign * self.counted())[self.learners].groupby(level=0)
        means = counted.mean().where(counted.count().eq(counted.size(), axis="index")).dropna(how="all")
        if means.empty:
            return frozenset()
        stds, best = counted.std(), means.idxmax(axis="columns")
        limits = Series({c: means.at[c, row] - stds.at[c, row] for c, row in best.items()}).round(_DIGITS)
        leads = means.round(_DIGITS).ge(limits, axis="index").stack()
        return frozenset((row, column) for column, row in leads.index[leads])


@dataclass(frozen=True)
class Leaderboards:
    """All boards of a journal."""

    boards: tuple[Board, ...]
    origin: Origin
    tunings: tuple[TuningRecord, ...] = ()
    """successful searches"""
    unlabelled: tuple[Board, ...] = ()
    """boards of datasets without labels, which have no ranks"""

    def __repr__(self) -> str:
        return f"<leaderboards: {', '.join(map(repr, (*self.boards, *self.unlabelled))) or 'none'}>"

    def of(self, regime: Literal["fine", "coarse"]) -> tuple[Board, ...]:
        """Return the boards whose criterion needs labels of validation rows (fine) or only proportions (coarse)."""
        return tuple(board for board in self.boards if board.criterion.regime == regime)

    def groups(self) -> list[dict[str, Board]]:
        """Return boards of the same bagging and protocol by criterion, groups with most runs first.

        Boards with a limited number of bags come last.
        """
        groups: dict[tuple[str, str], dict[str, Board]] = defaultdict(dict)
        for board in self.boards:
            groups[board.bagging, json.dumps(board.protocol, sort_keys=True)][board.criterion.name] = board

        def order(group: Mapping[str, Board]) -> tuple[bool, int]:
            board = next(iter(group.values()))
            return board.max_bags is not None, -sum(len(score.runs) for row in board.rows for score in row.scores)

        return sorted(groups.values(), key=order)

    def main_boards(self) -> list[Board]:
        """Return the boards by AUC and mPIoU of the two groups with most runs.

        Without epochs all criteria give the same scores, so such a group has one board.
        """
        boards = [group[name] for group in self.groups()[:2] for name in ("auc", "mpiou") if name in group]
        return [
            board for place, board in enumerate(boards) if not place or board.criterion.name == "auc" or board.protocol
        ]


def wide(runs: DataFrame, rows: int) -> DataFrame:
    """Return the values of runs: (column, seed) x rows."""
    keys = [*zip(runs["column"].tolist(), runs["seed"].tolist(), strict=True)]
    places = {key: place for place, key in enumerate(sorted({*keys}))}
    values = np.full((len(places), rows), np.nan)
    values[[places[key] for key in keys], runs["row"].tolist()] = runs["value"]
    index = MultiIndex.from_arrays(np.array([*places], dtype=int).reshape(-1, 2).T, names=RUN)
    return DataFrame(values, index, RangeIndex(rows, name="row"))


def grouped_means(
    values: DataFrame, groups: Iterable[Hashable] | None = None, *, skip_unknown: bool = True
) -> DataFrame:
    """Return means of groups of rows, sorted by group; by default by the first level of the index, the column.

    Unknown values are skipped, or make the mean unknown. `DataFrame.groupby` does the same, ten times as slowly.
    """
    names = [*(values.index.get_level_values(0) if groups is None else groups)]
    places: dict[Any, int] = {name: place for place, name in enumerate(sorted({*names}))}  # type: ignore[type-var]
    numbers, inverse = values.to_numpy(dtype=float), [places[name] for name in names]
    is_known = ~np.isnan(numbers) | (not skip_unknown)
    sums, counts = np.zeros((2, len(places), numbers.shape[1]))
    np.add.at(sums, inverse, np.where(is_known, numbers, 0.0))
    np.add.at(counts, inverse, is_known)
    with np.errstate(invalid="ignore"):
        return DataFrame(sums / counts, Index([*places]), values.columns)


def _summaries(values: DataFrame) -> dict[tuple[int, int], Summary | None]:
    """Return summaries by (row, column) of values (column, seed) x rows."""
    return {
        (row, column): summarise(seeds[~np.isnan(seeds)].tolist())
        for column, block in values.groupby(level=0)
        for row, seeds in enumerate(block.to_numpy().T)
    }


def means_over_datasets(values: DataFrame, datasets: Sequence[str]) -> Series:
    """Return the mean over datasets of the mean over their columns of the mean over seeds, by row.

    `values`: (column, seed) x rows. `datasets`: dataset of each column.
    """
    by_column = grouped_means(values)
    return grouped_means(by_column, (datasets[column] for column in by_column.index)).mean().round(_DIGITS)


def summarise(values: Sequence[float]) -> Summary | None:
    """Return mean and sample standard deviation, independent of the order; None without values."""
    n = len(values)
    if n == 0:
        return None
    if min(values) == max(values):  # no rounding: the standard deviation of equal values is exactly 0
        return Summary(values[0], 0.0 if n > 1 else None, n)
    mean = math.fsum(values) / n
    return Summary(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)), n)

"""The leaderboards as values: what every rendering (Markdown, CSV, JSON, terminal) shows, and nothing of how.

A *board* compares methods under one criterion, bagging and protocol. Its columns are (dataset, bag size), its rows
(method, encoder, pretraining, configuration), and where they meet stands a *score*: all seeds of one benchmark cell.
Its numbers are rows of the tidy table (`results/frame.py`); percentages are times 100, as they are shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from pandas import DataFrame, MultiIndex, Series

from llpbench.core.criteria import METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.results.frame import shown

T = TypeVar("T")

Role = Literal["ceiling", "", "floor"]
Mark = Literal["ceiling", "supervised", "floor", ""]

HEADLINE = "auc"
"""the test metric that leaderboards show and rank by, unless another is asked for"""

FEWEST_BAGS = 5
"""validation bags that a coarse criterion needs: chosen by fewer, an epoch is close to any epoch"""

REFERENCE = "float32"
"""the precision that others are held against, and that a specification need not name"""

FEW_BAGS = "†"
"""marks columns that have fewer"""

FEWEST_DATASETS = 6
"""behind ranks: on fewer, a method that is ahead on every one is not ahead at 0.05 by a test of signs"""

FEWEST_SEEDS = 3
"""of a single dataset, behind a test"""

RUN = ["column", "seed"]
"""what names a run of a row: the place of its column, and its seed"""

_DIGITS = 9
"""after the point, in which means that differ by rounding alone are equal"""

ColumnKey = tuple[str, int, str]
"""dataset, bag size (0: a bagging without a size) and natural key (usually empty): what names a column"""


class Summary(NamedTuple):
    """Several seeds of one metric."""

    mean: float
    std: float | None
    """sample standard deviation (n - 1); None for a single seed, which has no spread"""
    n: int


class Column(NamedTuple):
    """Column of a board: a dataset and a bag size."""

    dataset: str
    bag_size: int
    seeds: tuple[int, ...]
    """every seed that the journal holds for this column, ascending"""
    sizes: tuple[int, float, int] | None = None
    """rows of a training bag over all seeds: least, median (of the seeds' medians), most; None if no run says"""
    validation: tuple[int, int] | None = None
    """number of validation bags: that of the seed with fewest, and with most; None if no run says"""
    classes: int | None = None
    """of the dataset; None if no run says"""
    counts: bool = True
    """whether it is in means, ranks and tests: not where a coarse criterion has fewer than `FEWEST_BAGS` to go by"""
    extra: frozenset[int] = frozenset()
    """seeds that fewer than half of the methods have: a score is complete without them"""
    by: str = ""
    """natural key whose values are the bags, e.g. `native-country+education`; empty for other bags"""

    @property
    def key(self) -> ColumnKey:
        """Key among the columns of its board."""
        return self.dataset, self.bag_size, self.by

    @property
    def unequal(self) -> bool:
        """Whether its bags are known to differ in size."""
        return self.sizes is not None and self.sizes[0] != self.sizes[2]

    @property
    def bags(self) -> str:
        """The sizes of its bags: `256`, or least, median and most where they differ: `1–9–11,660`. Or their key: `by
        zipcode`."""
        if self.by:
            return f"by {self.by.replace('+', ' and ')}"
        if self.sizes is not None and self.unequal:
            least, middle, most = self.sizes
            return f"{least:,}–{middle:,.6g}–{most:,}"
        return str(self.bag_size or (self.sizes[0] if self.sizes else "unknown sizes"))

    @property
    def title(self) -> str:
        """Name in text, e.g. `adult 256`."""
        return f"{self.dataset} {self.bags}"

    @property
    def heading(self) -> str:
        """Name in headings, with a mark if the column does not count."""
        return self.title if self.counts else f"{self.title} {FEW_BAGS}"


class Contender(NamedTuple):
    """A compared method with its encoder, pretraining and configuration: it identifies a row."""

    method: str
    encoder: str | None
    """None for direct methods"""
    pretraining: str
    configuration: str
    """the hyperparameters in which this row differs from others of the same name, or how it was tuned; usually empty"""
    kind: str
    role: Role
    reference: str
    tuned: bool = False
    """whether its configuration was chosen by the board's criterion, for each column, among the trials of a search"""

    @property
    def label(self) -> str:
        """One line that tells this row from every other, e.g. `dllp (mlp, bag, weight=0.1)`."""
        parts = [self.encoder, self.pretraining if self.pretraining != "none" else None, self.configuration]
        details = ", ".join(part for part in parts if part)
        return f"{self.method} ({details})" if details else self.method


class Score(NamedTuple):
    """All seeds of one row in one column. Every expected seed has succeeded, failed or is missing."""

    cell: str | None = None
    """id of the benchmark cell; None if none of its runs is in the journal"""
    values: Mapping[int, float] = {}
    """of the board's metric by seed; only finite ones, so a run that succeeded can lack one"""
    failures: Mapping[int, str] = {}
    """reason by seed"""
    missing: tuple[int, ...] = ()
    """seeds of the column that have no run here, extra ones left out"""
    stale: Mapping[int, str] = {}
    """by seed, of runs that succeeded or failed: what has changed in the code since they, or the search that has chosen
    what they are of, were made"""
    best_epoch: float | None = None
    """median over the runs that succeeded; None for methods without epochs"""
    seconds: float | None = None
    """median duration of the runs that succeeded"""
    runs: Mapping[int, Record] = {}
    """by seed, failed ones too: everything that the journal knows of them"""
    tuning: str | None = None
    """id of the search that has chosen the cell for this row; None if none has"""

    @property
    def succeeded(self) -> tuple[int, ...]:
        """Seeds of the runs that succeeded."""
        return tuple(seed for seed in self.runs if seed not in self.failures)

    @property
    def expected(self) -> int:
        """Number of runs that a complete score has."""
        return len(self.runs) + len(self.missing)

    @property
    def headline(self) -> Summary | None:
        """Mean and spread of the seeds that have the board's metric; None if none has."""
        return summarise([*self.values.values()])

    @property
    def undefined(self) -> tuple[int, ...]:
        """Seeds that succeeded and yet have no (finite) value of the metric."""
        return tuple(seed for seed in self.succeeded if seed not in self.values)


@dataclass(frozen=True)
class Row:
    """One contender in every column of a board."""

    contender: Contender
    scores: tuple[Score, ...]
    """one for each column"""
    rank: int | None = None
    """None for what is trained on labels of rows, and for rows that lack a run on which the others are ranked"""
    mark: Mark = ""
    """what it is beside the methods: a floor, a 100 % mark of gaps, or something else that is trained on all labels"""
    is_default: bool = True
    """whether its hyperparameters are the method's defaults, and not because a search has chosen them"""
    ensemble: int = 1
    """networks that are averaged for each seed"""
    precision: str = REFERENCE
    """in which its products are computed"""

    @property
    def is_plain(self) -> bool:
        """Whether it is the default configuration without pretraining, of single networks, as floors and ceilings of
        gaps are."""
        return self.contender.pretraining == "none" and self.is_default and self.ensemble == 1

    @property
    def origin(self) -> Literal["default", "tuned", "changed"]:
        """Origin of its hyperparameters."""
        return "tuned" if self.contender.tuned else "default" if self.is_default else "changed"


@dataclass(frozen=True, eq=False)
class Board:
    """Rows that may be compared with one another."""

    criterion: Criterion
    bagging: str
    """with the number of training bags, where that is part of its cells (`cell.bagging_text`)"""
    protocol: Mapping[str, Any] | None
    """how long and on what a run trains (`cell.Protocol`); None where all methods are without epochs"""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    """as shown: what is trained on labels of rows, ranked rows, unranked rows"""
    runs: DataFrame
    """the rows of the tidy table that stand on it, by the criterion that chose their epochs, with the places of their
    `row` and `column`"""
    counting: MultiIndex
    """the runs (column, seed) that ranks and means are made of"""
    metric: Metric = METRICS[HEADLINE]
    """what it shows and ranks by"""
    failures: tuple[str, ...] = ()
    """one line for each thing that went wrong, with its reason"""
    surprises: tuple[str, ...] = ()
    """one line for each result that is worth a look"""
    stale: tuple[str, ...] = ()
    """one line for what was made by other code than there is now"""
    max_bags: int | None = None
    """training bags; None: all that there are"""
    differences: tuple[str, ...] = ()
    """one line for each column with a known difference between its bags"""

    def __repr__(self) -> str:
        rows, columns = plural(len(self.rows), "method"), plural(len(self.columns), "column")
        return f"<board by {self.criterion.name}, {self.bagging}: {rows}, {columns}>"

    @property
    def sign(self) -> int:
        """1 where more of the metric is better, else -1."""
        return 1 if self.metric.maximise else -1

    @property
    def hardware(self) -> tuple[str, ...]:
        """Hardware of its runs, e.g. `NVIDIA H200 (cuda)`, in alphabetical order."""
        runs = (run for row in self.rows for score in row.scores for run in score.runs.values())
        return tuple(sorted({device(run["hardware"]) for run in runs}))

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders of its rows, in alphabetical order."""
        return tuple(sorted({row.contender.encoder for row in self.rows if row.contender.encoder}))

    @property
    def ranked(self) -> list[int]:
        """Places of the ranked rows, best first."""
        return [place for place, row in enumerate(self.rows) if row.rank is not None]

    @property
    def learners(self) -> list[int]:
        """Places of the rows that know no label of a row."""
        return [place for place, row in enumerate(self.rows) if row.contender.role != "ceiling"]

    @cached_property
    def counting_columns(self) -> list[int]:
        """Places of the columns that have a run that counts."""
        return sorted(set(self.counting.get_level_values(0)))

    @property
    def datasets(self) -> list[str]:
        """The datasets of these columns."""
        return sorted({self.columns[place].dataset for place in self.counting_columns})

    def values(self, metric: str | None = None) -> DataFrame:
        """Return a test metric as it is shown: runs (column, seed) by rows."""
        name = metric or self.metric.name
        return self._once(
            f"values {name}",
            lambda: wide(self.runs[[*RUN, "row"]].assign(value=shown(self.runs, name)), len(self.rows)),
        )

    def counted(self, metric: str | None = None) -> DataFrame:
        """The same of the runs that count."""
        name = metric or self.metric.name
        return self._once(f"counted {name}", lambda: self.values(name).reindex(self.counting))

    def _once(self, key: str, make: Callable[[], T]) -> T:
        """Cache of computed values: pages, plots and terminal need the same."""
        known: dict[str, T] = self.__dict__.setdefault("_known", {})
        if key not in known:
            known[key] = make()
        return known[key]

    @cached_property
    def complete(self) -> DataFrame:
        """The board's metric in the runs that count, of every row that has them all."""
        counted = self.counted()
        return counted.dropna(axis="columns") if len(counted) else counted.iloc[:, :0]

    @cached_property
    def column_means(self) -> DataFrame:
        """Means over the runs that count, columns by rows; unknown unless a row has them all."""
        groups = self.counted().groupby(level=0)
        return groups.mean().where(groups.count().eq(groups.size(), axis="index"))

    def by_dataset(self, by_column: DataFrame) -> DataFrame:
        """Return the means over the columns of each dataset, of values whose index is columns."""
        names = [self.columns[column].dataset for column in by_column.index]
        return by_column.groupby(names).mean() if names else by_column

    def summary(self, row: int, column: int, metric: str) -> Summary | None:
        """Mean and spread over all seeds of a score."""
        return self._once(f"summaries {metric}", lambda: _summaries(self.values(metric))).get((row, column))

    @cached_property
    def leaders(self) -> frozenset[tuple[int, int]]:
        """(row, column) of each column's best score, ceilings aside, and of all within one std of it: no tie is a win.

        Only rows that have every run of the column that counts. A best score over a single seed has no spread, so
        nothing is claimed for its column.
        """
        counted = (self.sign * self.counted())[self.learners].groupby(level=0)
        means = counted.mean().where(counted.count().eq(counted.size(), axis="index")).dropna(how="all")
        if means.empty:
            return frozenset()
        stds, best = counted.std(), means.idxmax(axis="columns")
        bars = Series({c: means.at[c, row] - stds.at[c, row] for c, row in best.items()}).round(_DIGITS)
        bold = means.round(_DIGITS).ge(bars, axis="index").stack()
        return frozenset((row, column) for column, row in bold.index[bold])


@dataclass(frozen=True)
class Origin:
    """Origin of the numbers of a journal."""

    runs: int
    failed: int
    code: tuple[str, ...]
    """versions of llpbench, e.g. `0.1.0 (3f2a91c0de)`"""
    libraries: tuple[str, ...]
    hardware: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboards:
    """Everything that a journal has to say, ready to be rendered."""

    boards: tuple[Board, ...]
    origin: Origin
    tunings: tuple[TuningRecord, ...] = ()
    """the searches whose choices are among the rows"""
    unlabelled: tuple[Board, ...] = ()
    """those of datasets without labels, where there is nothing to rank by"""

    def __repr__(self) -> str:
        return f"<leaderboards: {', '.join(map(repr, (*self.boards, *self.unlabelled))) or 'none'}>"

    def of(self, regime: Literal["fine", "coarse"]) -> tuple[Board, ...]:
        """The boards whose criterion needs labels of validation rows (fine) or only proportions (coarse)."""
        return tuple(board for board in self.boards if board.criterion.regime == regime)

    @property
    def records(self) -> list[Record]:
        """The runs of all boards, each once."""
        every = (row for board in self.boards for row in board.rows)
        runs = (run for row in every for score in row.scores for run in score.runs.values())
        return [*{run["run"]: run for run in runs}.values()]


def wide(runs: DataFrame, rows: int) -> DataFrame:
    """Return the values of runs by (column, seed) and place of the row."""
    return runs.pivot(index=RUN, columns="row", values="value").reindex(columns=range(rows))


def _summaries(values: DataFrame) -> dict[tuple[int, int], Summary | None]:
    """Summaries by row and column, of runs (column, seed) by rows."""
    return {
        (row, column): summarise(own[~np.isnan(own)].tolist())
        for column, block in values.groupby(level=0)
        for row, own in enumerate(block.to_numpy().T)
    }


def means_over_datasets(values: DataFrame, datasets: Sequence[str]) -> Series:
    """Return the mean over datasets of the mean over their columns of the mean over seeds, equal where rounding alone
    differs. `values`: runs (column, seed) by rows; `datasets`: of each column, by place."""
    by_column = values.groupby(level=0).mean()
    return by_column.groupby([datasets[column] for column in by_column.index]).mean().mean().round(_DIGITS)


def device(hardware: Mapping[str, Any]) -> str:
    """`AMD EPYC (cpu)`; of a run that failed before it was on any, which its record says by naming none, so."""
    if not hardware:
        return "none (failed before)"
    return f"{hardware['name']} ({hardware['device']})"


def summarise(values: Sequence[float]) -> Summary | None:
    """Mean and sample standard deviation, whatever the order of `values`; None if there are none."""
    n = len(values)
    if n == 0:
        return None
    if min(values) == max(values):  # no rounding: equal values have a std of exactly 0
        return Summary(values[0], 0.0 if n > 1 else None, n)
    mean = math.fsum(values) / n
    return Summary(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)), n)

"""The leaderboards as values: what every rendering (Markdown, CSV, JSON, terminal) shows, and nothing of how.

A *board* compares methods under one criterion, bagging and protocol. Its columns are (dataset, bag size), its rows
(method, encoder, pretraining, configuration), and where they meet stands a *score*: all seeds of one benchmark cell.
Percentages (`criteria.METRICS`) are held as they are shown, times 100.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS, Criterion
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural

if TYPE_CHECKING:
    from llpbench.report.standings import Standings

Role = Literal["ceiling", "", "floor"]

HEADLINE = "auc"
"""the test metric that leaderboards show and rank by"""

FEWEST_BAGS = 5
"""validation bags that a coarse criterion needs: chosen by fewer, an epoch is close to any epoch"""

REFERENCE = "float32"
"""the precision that others are held against, and that a specification need not name"""

FEW_BAGS = "†"
"""marks columns that have fewer"""

FEWEST_DATASETS = 6
"""behind ranks: on fewer, a method that is ahead on every one is not ahead at 0.05 by a test of signs"""

ColumnKey = tuple[str, int]
"""dataset and bag size as a cell's specification has them (0: a bagging without a size): what names a column"""

NOTHING_STALE: Mapping[str, str] = MappingProxyType({})
"""what reports go by where nobody has compared the runs with the code"""


class Summary(NamedTuple):
    """Several seeds of one metric."""

    mean: float
    std: float | None
    """sample standard deviation (n - 1); None for a single seed, which has no spread"""
    n: int


class Column(NamedTuple):
    """What rows are compared on."""

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

    @property
    def key(self) -> ColumnKey:
        """What names it among the columns of its board."""
        return self.dataset, self.bag_size

    @property
    def unequal(self) -> bool:
        """Whether its bags are known to differ in size."""
        return self.sizes is not None and self.sizes[0] != self.sizes[2]

    @property
    def bags(self) -> str:
        """The sizes of its bags: `256`, or least, median and most where they differ: `1–9–11,660`."""
        if self.sizes is not None and self.unequal:
            least, middle, most = self.sizes
            return f"{least:,}–{middle:,.6g}–{most:,}"
        return str(self.bag_size or (self.sizes[0] if self.sizes else "unknown sizes"))

    @property
    def title(self) -> str:
        """As lines of text name it, e.g. `adult 256`."""
        return f"{self.dataset} {self.bags}"

    @property
    def heading(self) -> str:
        """As headings name it, with a mark if it does not count."""
        return self.title if self.counts else f"{self.title} {FEW_BAGS}"


class Contender(NamedTuple):
    """What is compared: it names a row."""

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


@dataclass(frozen=True)
class Score:
    """All seeds of one row in one column. Every expected seed has succeeded, failed or is missing."""

    cell: str | None
    """id of the benchmark cell; None if none of its runs is in the journal"""
    values: Mapping[str, Mapping[int, float]]
    """by test metric and seed; only finite ones, so a run that succeeded can lack one"""
    succeeded: tuple[int, ...]
    failures: Mapping[int, str]
    """reason by seed"""
    missing: tuple[int, ...]
    """seeds of the column that have no run here, extra ones left out"""
    stale: Mapping[int, str]
    """by seed, of runs that succeeded or failed: what has changed in the code since they, or the search that has chosen
    what they are of, were made"""
    best_epoch: float | None
    """median over the runs that succeeded; None for methods without epochs"""
    seconds: float | None
    """median duration of the runs that succeeded"""
    runs: Mapping[int, Record] = field(default_factory=dict)
    """by seed, failed ones too: everything that the journal knows of them"""
    tuning: str | None = None
    """id of the search that has chosen the cell for this row; None if none has"""

    @property
    def expected(self) -> int:
        """Number of runs that a complete score has."""
        return len(self.succeeded) + len(self.failures) + len(self.missing)

    @property
    def headline(self) -> Summary | None:
        """Summary of the metric that boards show."""
        return self.summary(HEADLINE)

    def summary(self, metric: str) -> Summary | None:
        """Mean and spread of the seeds that have `metric`; None if none has."""
        return summarise(list(self.values.get(metric, {}).values()))

    def undefined(self, metric: str = HEADLINE) -> tuple[int, ...]:
        """Seeds that succeeded and yet have no (finite) value of `metric`."""
        known = self.values.get(metric, {})
        return tuple(seed for seed in self.succeeded if seed not in known)


@dataclass(frozen=True)
class Row:
    """One contender in every column of a board."""

    contender: Contender
    scores: tuple[Score, ...]
    """one for each column"""
    rank: int | None = None
    """None for what is trained on labels of rows, and for rows that lack a run on which the others are ranked"""
    mark: Literal["ceiling", "supervised", "floor", ""] = ""
    """what it is beside the methods: a floor, a 100 % mark of gaps, or something else that is trained on all labels"""

    @cached_property
    def is_default(self) -> bool:
        """Whether its hyperparameters are the method's defaults, and not because a search has chosen them."""
        changed = (run["method"]["changed"] for score in self.scores for run in score.runs.values())
        return not self.contender.tuned and not any(changed)

    @cached_property
    def ensemble(self) -> int:
        """Networks that are averaged for each seed."""
        return max((run["spec"].get("ensemble", 1) for score in self.scores for run in score.runs.values()), default=1)

    @cached_property
    def precision(self) -> str:
        """In which its products are computed."""
        found = (run["spec"].get("precision", REFERENCE) for score in self.scores for run in score.runs.values())
        return next(found, REFERENCE)

    @property
    def is_plain(self) -> bool:
        """Whether it is the default configuration without pretraining, of single networks, as floors and ceilings of
        gaps are."""
        return self.contender.pretraining == "none" and self.is_default and self.ensemble == 1

    @property
    def origin(self) -> Literal["default", "tuned", "changed"]:
        """Where its hyperparameters come from."""
        return "tuned" if self.contender.tuned else "default" if self.is_default else "changed"


@dataclass(frozen=True)
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
    leaders: frozenset[tuple[int, int]]
    """(row, column) of the best scores but for ceilings, with all that lie within one std of the best"""
    failures: tuple[str, ...]
    """one line for each thing that went wrong, with its reason"""
    surprises: tuple[str, ...]
    """one line for each result that is worth a look"""
    stale: tuple[str, ...]
    """one line for what was made by other code than there is now"""
    max_bags: int | None = None
    """training bags; None: all that there are"""
    differences: tuple[str, ...] = ()
    """one line for each column of which it is known how much its bags differ from one another"""
    common: bool = False
    """whether only the runs are shown that all rows have completed"""

    def __repr__(self) -> str:
        rows, columns = plural(len(self.rows), "method"), plural(len(self.columns), "column")
        return f"<board by {self.criterion.name}, {self.bagging}: {rows}, {columns}>"

    @cached_property
    def standings(self) -> Standings:
        """What it says over all its columns: made once, since pages, plots and terminal ask for the same."""
        from llpbench.report.standings import Standings

        return Standings(self)

    @property
    def hardware(self) -> tuple[str, ...]:
        """What its runs were computed on, e.g. `NVIDIA H200 (cuda)`, in alphabetical order."""
        runs = (run for row in self.rows for score in row.scores for run in score.runs.values())
        return tuple(sorted({device(run["hardware"]) for run in runs}))

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders of its rows, in alphabetical order."""
        return tuple(sorted({row.contender.encoder for row in self.rows if row.contender.encoder}))


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a journal come from."""

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


def board_criteria() -> tuple[Criterion, ...]:
    """The criteria of `BOARD_CRITERIA`, in that order."""
    return tuple(CRITERIA[name] for name in BOARD_CRITERIA)


def values_of(runs: Mapping[int, Record], criterion: Criterion) -> dict[str, dict[int, float]]:
    """By test metric and seed, as `Score.values`: of the runs that succeeded, at the epochs that a criterion chose."""
    found: dict[str, dict[int, float]] = {}
    for seed, run in runs.items():
        result = run["results"].get(criterion.name) if run["status"] == "ok" else None
        for metric, value in result["test"].items() if result else ():
            if value is not None and math.isfinite(value):
                percent = metric in METRICS and METRICS[metric].percent
                found.setdefault(metric, {})[seed] = 100.0 * value if percent else value
    return found

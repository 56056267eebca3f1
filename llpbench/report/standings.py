"""What a board says over all its columns: statistics of its ranked rows, and where every row stands.

All of it is computed on the runs that count (`ranking.runs_that_count`), which every ranked row has completed. Pandas
and scipy are imported here, when a report is written, and not with the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.report.boards import HEADLINE, REFERENCE, Board, Column, Role, Row, Summary, summarise
from llpbench.report.costs import cost_of
from llpbench.report.ranking import completed, mean_over_datasets, runs_that_count

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from llpbench.report.statistics import Friedman

MOST_COMPARED = 40
"""rows that are compared pair by pair: more could not be read, and all pairs of thousands would take hours"""

Interval = tuple[float, float]


class AgainstFloor(NamedTuple):
    """How far a row is above the floor of its encoder."""

    mean: float
    """over datasets, in points"""
    interval: Interval | None
    """95 %, of the mean over all datasets like these (of a single one: over all seeds); None where nothing is known"""
    ahead: int
    """columns in which its mean is above the floor's"""
    columns: int


class Gap(NamedTuple):
    """The way from floor to ceiling that a row goes, in percent, over the columns where there is one."""

    percent: float
    interval: Interval | None
    """as that of `AgainstFloor`; None of fewer than three datasets, and for floor and ceiling, which it is made of"""
    columns: int


@dataclass(frozen=True)
class Standing:
    """Where a row stands over all columns that count."""

    overall: Summary | None
    """mean over the datasets, of the mean over their columns; its standard deviation over seeds, which are paired
    within a dataset and independent between datasets; the least number of seeds. None if a run is lacking"""
    mean_rank: float | None
    """over datasets; None for rows that are not ranked"""
    interval: tuple[int, int] | None
    """95 % interval of the rank; None where nothing is known"""
    letters: str
    """of the leaders that it cannot be told apart from; "" where nothing is known"""
    floor: AgainstFloor | None
    """None for the floor itself, and where a run of either is lacking"""
    gap: Gap | None
    """None where a run of the row, the floor or the ceiling is lacking, and where no column has a gap"""
    seconds: float | None
    """of training, mean over datasets of the mean over their columns (`costs`); None where a run is lacking or does not
    say"""
    wins: float | None
    """percent of comparisons won against the other ranked rows"""
    done: int
    failed: int
    stale: int
    expected: int
    """of all runs of the board: succeeded with a score, failed, made by other code, and what a complete row has"""


class Standings:
    """The standings of one board, computed when they are asked for."""

    def __init__(self, board: Board) -> None:
        self.board = board
        contenders = [row for row in board.rows if row.contender.role != "ceiling"]
        self.runs = runs_that_count(contenders, board.columns)
        self.ranked = [row for row in board.rows if row.rank is not None]
        self._seeds: dict[int, list[int]] = {}
        for column, seed in sorted(self.runs):
            self._seeds.setdefault(column, []).append(seed)

    @property
    def columns(self) -> list[int]:
        """The columns that count, by index."""
        return [*self._seeds]

    @property
    def counting(self) -> list[Column]:
        """These columns."""
        return [self.board.columns[column] for column in self.columns]

    @property
    def datasets(self) -> list[str]:
        """Of these columns."""
        return sorted({column.dataset for column in self.counting})

    def frame(self, rows: Sequence[Row] | None = None) -> DataFrame:
        """The scores of some rows (default: the ranked ones) in the runs that count, as `report.statistics` has it."""
        from pandas import DataFrame

        columns = self.board.columns
        found = [
            (row.contender.label, columns[c].dataset, columns[c].bag_size, seed, row.scores[c].values[HEADLINE][seed])
            for row in (self.ranked if rows is None else rows)
            for c, seed in sorted(self.runs)
            if seed in row.scores[c].values.get(HEADLINE, {})
        ]
        return DataFrame(found, columns=["method", "dataset", "bag_size", "seed", "value"])

    @cached_property
    def _standings(self) -> DataFrame | None:
        from llpbench.report import statistics

        return statistics.standings(self.frame()) if self.ranked else None

    @cached_property
    def _wins(self) -> Series | None:
        """Of each ranked row, the share of comparisons with the others that it wins: what its ranks in runs say."""
        if len(self.ranked) < 2:
            return None
        frame = self.frame()
        ranks = frame.groupby(["dataset", "bag_size", "seed"])["value"].rank(ascending=False)
        shares = frame.assign(share=(len(self.ranked) - ranks) / (len(self.ranked) - 1))
        blocks = shares.groupby(["method", "dataset", "bag_size"])["share"].mean()
        return blocks.groupby("method").mean()

    @property
    def compared(self) -> list[Row]:
        """The ranked rows that are compared pair by pair: the first `MOST_COMPARED`."""
        return self.ranked[:MOST_COMPARED]

    @cached_property
    def win_rates(self) -> DataFrame | None:
        """Share of runs in which one of `compared` is above another; None with fewer than two."""
        from llpbench.report import statistics

        return statistics.win_rates(self.frame(self.compared)) if len(self.ranked) > 1 else None

    @cached_property
    def friedman(self) -> Friedman | None:
        """Friedman's test and Nemenyi's critical difference; None where there is too little."""
        from llpbench.report import statistics

        return statistics.friedman(self.frame()) if self.ranked else None

    @cached_property
    def comparisons(self) -> DataFrame | None:
        """p values of the paired t test between `compared`, by Holm for all ranked rows, as letters go by them.

        None where there is too little, or too much.
        """
        from llpbench.report import statistics

        if not self.ranked or len(self.ranked) > statistics.MOST_METHODS:
            return None
        found = statistics.comparisons(self.frame())
        labels = [row.contender.label for row in self.compared]
        return None if found is None else found.loc[labels, labels]

    @cached_property
    def wilcoxon(self) -> DataFrame | None:
        """p values of Wilcoxon's signed-rank test between `compared`, by Holm; None where there is too little."""
        from llpbench.report import statistics

        return statistics.wilcoxon_holm(self.frame(self.compared)) if self.ranked else None

    @cached_property
    def rows(self) -> tuple[Standing, ...]:
        """Of every row of the board, in its order."""
        return tuple(self._standing(row) for row in self.board.rows)

    def mean(self, row: Row, metric: str = HEADLINE) -> Summary | None:
        """Mean of a test metric over datasets and its standard deviation over seeds; None if a run lacks it.

        Seeds of a dataset share its split, whatever the bag size, so they are paired within it. Those of different
        datasets share nothing: their variances add.
        """
        if not self.runs or any(seed not in row.scores[c].values.get(metric, {}) for c, seed in self.runs):
            return None
        spreads = []
        for dataset in self.datasets:
            own = [column for column in self.columns if self.board.columns[column].dataset == dataset]
            seeds = set.intersection(*({*self._seeds[column]} for column in own))
            values = {column: row.scores[column].values[metric] for column in own}
            spreads.append(summarise([fsum(values[c][seed] for c in own) / len(own) for seed in sorted(seeds)]))
        stds = [spread.std for spread in spreads if spread is not None and spread.std is not None]
        known = sqrt(fsum(std**2 for std in stds)) / len(spreads) if len(stds) == len(spreads) else None
        mean = mean_over_datasets(row, self.runs, self.board.columns, metric)
        return Summary(mean, known, min(0 if spread is None else spread.n for spread in spreads))

    def spread(self, row: Row, column: int, metric: str = HEADLINE) -> Summary | None:
        """Of the row's runs that count in a column; None if it has none of them."""
        values = row.scores[column].values.get(metric, {})
        return summarise([values[seed] for seed in self._seeds.get(column, ()) if seed in values])

    @property
    def spreads(self) -> DataFrame | None:
        """Standard deviations over seeds of the ranked rows, by label, in the columns that count, by index.

        None with fewer than two rows, and where a spread is unknown.
        """
        from pandas import DataFrame

        stds = {
            row.contender.label: [spread.std if (spread := self.spread(row, c)) else None for c in self.columns]
            for row in self.ranked
        }
        unknown = any(std is None for row in stds.values() for std in row)
        return None if unknown or len(stds) < 2 else DataFrame(stds, index=self.columns).T

    def gaps_closed(self, row: Row) -> dict[int, float]:
        """(score - floor) / (ceiling - floor) in percent, by column.

        The floor and the ceiling are those of the row's encoder, not pretrained; for rows without an encoder those of
        the board's first encoder. Columns where the two are closer than one standard deviation of either are left out:
        there is no gap to close.
        """
        return {c: 100 * (score - low) / (high - low) for c, (low, high, score) in self._spans(row).items()}

    def gap(self, row: Row) -> Gap | None:
        """Over the columns that have a gap: the sum of (score - floor) over the sum of (ceiling - floor), in percent.

        A mean of ratios would be ruled by columns where floor and ceiling are close.
        """
        from llpbench.report.statistics import ratio_interval

        floor, ceiling = self._reference(row, "floor"), self._reference(row, "ceiling")
        if floor is None or ceiling is None or any(self.runs - completed(each) for each in (row, floor, ceiling)):
            return None
        spans = self._spans(row)
        if not spans:
            return None
        gained, whole = (self._by_block(one, floor, [*spans]) for one in (row, ceiling))
        pairs = [(gained[block], whole[block]) for block in gained]
        interval = ratio_interval(pairs)
        gap = fsum(high - low for low, high, _ in spans.values())
        percent = 100 * fsum(score - low for low, _, score in spans.values()) / gap
        known = isfinite(interval[0]) and self._even and row not in (floor, ceiling)
        return Gap(percent, (100 * interval[0], 100 * interval[1]) if known else None, len(spans))

    def against_floor(self, row: Row) -> AgainstFloor | None:
        """The row minus the floor of its encoder; None for that floor, and where a run of either is lacking."""
        from llpbench.report.statistics import interval

        floor = self._reference(row, "floor")
        if not self.runs or floor is None or floor is row or any(self.runs - completed(each) for each in (row, floor)):
            return None
        differences = self._blocks[row.contender.label] - self._blocks[floor.contender.label]
        low, high = interval(differences)
        means = (mean_over_datasets(each, self.runs, self.board.columns) for each in (row, floor))
        ahead = [(self._mean(row, column) or 0.0) > (self._mean(floor, column) or 0.0) for column in self.columns]
        known = (low, high) if isfinite(low) and self._even else None
        return AgainstFloor(next(means) - next(means), known, sum(ahead), len(ahead))

    @property
    def _even(self) -> bool:
        """Whether intervals are of all runs that count: of one dataset they go by the seeds that all its columns
        have."""
        return len({*self.datasets}) > 1 or len({tuple(seeds) for seeds in self._seeds.values()}) == 1

    @cached_property
    def _blocks(self) -> DataFrame:
        """What intervals go by, of every row that has completed the runs that count: at once, since it takes time."""
        from llpbench.report import statistics

        return statistics.blocks(self.frame([row for row in self.board.rows if not self.runs - completed(row)]))

    def _by_block(self, one: Row, other: Row, columns: Sequence[int]) -> Mapping[object, float]:
        """The sum over columns of the difference of two rows, by dataset; of a single dataset by seed."""
        datasets = {column: self.board.columns[column].dataset for column in columns}
        found: dict[object, list[float]] = {}
        if len({*datasets.values()}) > 1:
            for column, dataset in datasets.items():
                difference = (self._mean(one, column) or 0.0) - (self._mean(other, column) or 0.0)
                found.setdefault(dataset, []).append(difference)
        else:
            for seed in sorted(set.intersection(*({*self._seeds[column]} for column in columns))):
                first, second = (
                    [row.scores[column].values[HEADLINE][seed] for column in columns] for row in (one, other)
                )
                found[seed] = [a - b for a, b in zip(first, second, strict=True)]
        return {block: fsum(values) for block, values in found.items()}

    def _spans(self, row: Row) -> dict[int, tuple[float, float, float]]:
        """Floor, ceiling and score, by column that counts and has a gap; columns that lack any of them are left out."""
        rows = self._reference(row, "floor"), self._reference(row, "ceiling"), row
        found = {}
        for column in self.columns:
            low, high, here = (self._mean(each, column) for each in rows)
            if low is None or high is None or here is None:
                continue
            spreads = [summary.std or 0.0 for each in rows[:2] if each and (summary := self.spread(each, column))]
            if high - low > max(spreads):
                found[column] = (low, high, here)
        return found

    def _standing(self, row: Row) -> Standing:
        common: dict[str, Any] = {"mean_rank": None, "interval": None, "letters": "", "wins": None}
        if row.rank is not None and self._standings is not None:
            found = self._standings.loc[row.contender.label]
            common["mean_rank"] = float(found["mean_rank"])
            if not _unknown(found["low"]):
                common |= {"interval": (int(found["low"]), int(found["high"])), "letters": str(found["letters"])}
            if self._wins is not None:
                common["wins"] = 100 * float(self._wins.loc[row.contender.label])
        return Standing(
            overall=self.mean(row),
            floor=self.against_floor(row),
            gap=self.gap(row),
            seconds=None if (cost := cost_of(row, self.runs, self.board.columns)) is None else cost.seconds,
            done=len(completed(row)),
            failed=sum(len(score.failures) for score in row.scores),
            stale=sum(len(score.stale) for score in row.scores),
            expected=sum(score.expected for score in row.scores),
            **common,
        )

    def _mean(self, row: Row | None, column: int) -> float | None:
        """Of the row's runs that count in a column; None unless it has them all."""
        if row is None:
            return None
        values = row.scores[column].values.get(HEADLINE, {})
        seeds = self._seeds.get(column, [])
        if not seeds or any(seed not in values for seed in seeds):
            return None
        return fsum(values[seed] for seed in seeds) / len(seeds)

    def _reference(self, row: Row, role: Role) -> Row | None:
        """The floor or ceiling of its encoder: in its precision if there is one, else in float32."""
        encoder = row.contender.encoder or next(iter(self.board.encoders), None)
        plain = (other for other in self.board.rows if other.contender.role == role and other.is_plain)
        own = [other for other in plain if other.contender.encoder == encoder]
        return min(own, key=lambda it: (it.precision != row.precision, it.precision != REFERENCE), default=None)


def _unknown(value: object) -> bool:
    import pandas

    return bool(pandas.isna(value))

"""What a board says over all its columns: statistics of its ranked rows, and where every row stands.

All of it is computed on the runs that count (`ranking.runs_that_count`), which every ranked row has completed. Pandas
and scipy are imported here, when a report is written, and not with the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any

from llpbench.report.boards import HEADLINE, Board, Row, Summary, summarise
from llpbench.report.ranking import completed, mean_over_columns, runs_that_count

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from llpbench.report.statistics import Friedman

MOST_COMPARED = 40
"""rows that are compared pair by pair: more could not be read, and all pairs of thousands would take hours"""


@dataclass(frozen=True)
class Standing:
    """Where a row stands over all columns that count."""

    overall: Summary | None
    """mean over the columns of each seed's score, its spread over seeds, number of seeds; None if a run is lacking"""
    mean_rank: float | None
    """over columns; None for rows that are not ranked"""
    interval: tuple[int, int] | None
    """95 % interval of the rank; None where nothing can be resampled"""
    group: str
    """rows of one letter cannot be told apart from the best of them; "" where nothing can be resampled"""
    gap_closed: float | None
    """the way from floor to ceiling that it goes over all columns, in percent"""
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
        contenders = [row for row in board.rows if row.contender.role == ""]
        self.runs = runs_that_count(contenders)
        self.ranked = [row for row in board.rows if row.rank is not None]

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
    def wilcoxon(self) -> DataFrame | None:
        """p values of Wilcoxon's signed-rank test between `compared`, by Holm; None where there is too little."""
        from llpbench.report import statistics

        return statistics.wilcoxon_holm(self.frame(self.compared)) if self.ranked else None

    @cached_property
    def rows(self) -> tuple[Standing, ...]:
        """Of every row of the board, in its order."""
        return tuple(self._standing(row) for row in self.board.rows)

    def spread(self, row: Row, column: int) -> Summary | None:
        """Of the row's runs that count in a column; None if it has none of them."""
        values = row.scores[column].values.get(HEADLINE, {})
        return summarise([values[seed] for c, seed in sorted(self.runs) if c == column and seed in values])

    @property
    def spreads(self) -> DataFrame | None:
        """Standard deviations over seeds of the ranked rows, by label, in the columns that count, by index.

        None with fewer than two rows, and where a spread is unknown.
        """
        from pandas import DataFrame

        columns = sorted({column for column, _ in self.runs})
        stds = {
            row.contender.label: [spread.std if (spread := self.spread(row, column)) else None for column in columns]
            for row in self.ranked
        }
        unknown = any(std is None for row in stds.values() for std in row)
        return None if unknown or len(stds) < 2 else DataFrame(stds, index=columns).T

    def gaps_closed(self, row: Row) -> dict[int, float]:
        """(score - floor) / (ceiling - floor) in percent, by column.

        The floor and the ceiling are those of the row's encoder, not pretrained; for rows without an encoder those of
        the board's first encoder. Columns where the two are closer than one standard deviation of either are left out:
        there is no gap to close.
        """
        references = [other for role in ("floor", "ceiling") if (other := self._reference(row, role)) is not None]
        found = {}
        for column, (low, high, score) in self._spans(row).items():
            spreads = [summary.std or 0.0 for other in references if (summary := self.spread(other, column))]
            if high - low > max(spreads):
                found[column] = 100 * (score - low) / (high - low)
        return found

    def gap_closed(self, row: Row) -> float | None:
        """Over all columns that count: the sum of (score - floor) over the sum of (ceiling - floor), in percent.

        A mean of ratios would be ruled by columns where floor and ceiling are close. None if a column is lacking.
        """
        spans = self._spans(row)
        total = fsum(high - low for low, high, _ in spans.values())
        if spans.keys() != {column for column, _ in self.runs} or total <= 0:
            return None
        return 100 * fsum(score - low for low, _, score in spans.values()) / total

    def _spans(self, row: Row) -> dict[int, tuple[float, float, float]]:
        """Floor, ceiling and score, by column that counts; columns that lack any of them are left out."""
        rows = self._reference(row, "floor"), self._reference(row, "ceiling"), row
        found = {}
        for column in sorted({column for column, _ in self.runs}):
            low, high, here = (self._mean(each, column) for each in rows)
            if low is not None and high is not None and here is not None:
                found[column] = (low, high, here)
        return found

    def _standing(self, row: Row) -> Standing:
        lacking = self.runs - completed(row)
        complete = bool(self.runs) and not lacking
        common: dict[str, Any] = {"mean_rank": None, "interval": None, "group": "", "wins": None}
        if row.rank is not None and self._standings is not None:
            found = self._standings.loc[row.contender.label]
            common["mean_rank"] = float(found["mean_rank"])
            if not _unknown(found["low"]):
                common |= {"interval": (int(found["low"]), int(found["high"])), "group": str(found["group"])}
            if self._wins is not None:
                common["wins"] = 100 * float(self._wins.loc[row.contender.label])
        return Standing(
            overall=self._overall(row) if complete else None,
            gap_closed=self.gap_closed(row),
            done=len(completed(row)),
            failed=sum(len(score.failures) for score in row.scores),
            stale=sum(len(score.stale) for score in row.scores),
            expected=sum(score.expected for score in row.scores),
            **common,
        )

    def _overall(self, row: Row) -> Summary:
        """Mean over columns; its spread over the seeds that all columns share (none: unknown)."""
        by_column: dict[int, set[int]] = {}
        for column, seed in self.runs:
            by_column.setdefault(column, set()).add(seed)
        shared = sorted(set.intersection(*by_column.values()))
        spread = summarise([mean_over_columns(row, [(column, seed) for column in by_column]) for seed in shared])
        return Summary(mean_over_columns(row, self.runs), spread.std if spread else None, len(shared))

    def _mean(self, row: Row | None, column: int) -> float | None:
        """Of the row's runs that count in a column; None unless it has them all."""
        if row is None:
            return None
        values = row.scores[column].values.get(HEADLINE, {})
        seeds = [seed for c, seed in self.runs if c == column]
        if not seeds or any(seed not in values for seed in seeds):
            return None
        return fsum(values[seed] for seed in sorted(seeds)) / len(seeds)

    def _reference(self, row: Row, role: str) -> Row | None:
        encoder = row.contender.encoder or next(iter(self.board.encoders), None)
        plain = (other for other in self.board.rows if other.contender.role == role and _is_plain(other))
        return next((other for other in plain if other.contender.encoder == encoder), None)


def _is_plain(row: Row) -> bool:
    """Whether a row is the default configuration without pretraining."""
    return row.contender.pretraining == "none" and row.is_default


def _unknown(value: object) -> bool:
    import pandas

    return bool(pandas.isna(value))

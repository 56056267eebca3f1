"""Statistics of columns from rows in batches: ranges, means and deviations of numbers, and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray
from llpbench.core.errors import DataError
from llpbench.data.frames import is_numeric, read_features, read_numbers
from llpbench.data.tasks import Scaler
from llpbench.owndata.columns import FeatureColumns
from llpbench.owndata.extremes import NumberRange, number_range

_SAMPLE_ROWS, _SAMPLE_VALUES = 200_000, 10_000_000
"""Largest numbers of rows, and of values in all columns, from which ranges are estimated."""
_MOST_CATEGORIES = 1_000_000


class Moments:
    """Number, mean, sum of squared deviations, minimum and maximum of some columns of numbers."""

    def __init__(self, columns: int) -> None:
        self.number, self.mean, self.squares = np.zeros(columns), np.zeros(columns), np.zeros(columns)
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        self.missing = np.zeros(columns)

    def add(self, place: int, values: FloatArray) -> None:
        """Add values of a column, NaN where missing."""
        missing = np.isnan(values)
        gone = int(np.count_nonzero(missing))
        self.missing[place] += gone
        present = values[~missing] if gone else values
        if len(present):
            mean = present.mean()
            away = present - mean
            self._combine(place, len(present), mean, away @ away, present.min(), present.max())

    def merge(self, other: Moments) -> None:
        """Add the values that another object has seen."""
        self.missing += other.missing
        for place in map(int, np.flatnonzero(other.number)):
            seen = (each[place] for each in (other.number, other.mean, other.squares, other.low, other.high))
            self._combine(place, *seen)

    def _combine(self, place: int, number: float, mean: float, squares: float, low: float, high: float) -> None:
        """Add some values of a column (Chan et al. 1979)."""
        before = self.number[place]
        away, total = mean - self.mean[place], before + number
        self.squares[place] += squares + away**2 * before * number / total
        self.mean[place] += away * number / total
        self.number[place] = total
        self.low[place] = min(self.low[place], low)
        self.high[place] = max(self.high[place], high)


@dataclass(frozen=True, eq=False)
class BatchStatistics:
    """Statistics of some rows."""

    rows: int
    moments: Moments
    numeric: dict[str, bool]
    """whether a column with values has numbers"""
    categories: dict[str, set[str]]
    sample: FloatArray
    """[some rows, 1 + columns] rows from which ranges may be estimated: a random number, then their values"""


class ColumnStatistics:
    """Statistics of the features, collected in one pass over all rows."""

    def __init__(self, names: Sequence[str], seed: int) -> None:
        """Start without rows. `seed` is for the sample from which ranges are estimated."""
        self.names = list(names)
        self.rows = 0
        self.moments = Moments(len(self.names))
        self._numeric: dict[str, bool] = {}
        self._categories: dict[str, set[str]] = {name: set() for name in self.names}
        self._seed = seed
        self._most = min(_SAMPLE_ROWS, max(_SAMPLE_VALUES // max(len(self.names), 1), 1_000))
        self._share = 1.0
        self._kept: list[FloatArray] = [np.empty((0, 1 + len(self.names)))]

    @property
    def sampled(self) -> int:
        """Number of rows from which ranges are estimated."""
        return sum(map(len, self._kept))

    def draw(self, part: int, first: int, rows: int) -> FloatArray:
        """Return a random number for each of some consecutive rows of a part. Batches do not matter."""
        return np.random.Generator(np.random.PCG64([self._seed, part]).advance(first)).random(rows)

    def of_batch(self, frame: pd.DataFrame, drawn: FloatArray) -> BatchStatistics:
        """Return statistics of rows, which have these random numbers. Threads and other machines may call it.

        Raises `DataError` for infinite numbers and unsupported types.
        """
        some = np.flatnonzero(drawn < self._share)  # `merge` leaves more of them out
        moments, numeric = Moments(len(self.names)), {}
        categories: dict[str, set[str]] = {}
        values = np.full((len(self.names), len(some)), np.nan)
        for place, name in enumerate(self.names):
            series = frame[name]
            if series.isna().all():
                moments.missing[place] += len(series)
            elif is_numeric(series, "X"):
                numeric[name] = True
                numbers = read_numbers(series, "X")
                moments.add(place, numbers)
                values[place] = numbers[some]
            else:
                numeric[name] = False
                moments.missing[place] += series.isna().sum()
                categories[name] = {*read_features(series.to_frame(), "X")[1][name][1]}
        return BatchStatistics(len(frame), moments, numeric, categories, np.column_stack([drawn[some], values.T]))

    def merge(self, batch: BatchStatistics) -> None:
        """Add statistics of rows, in the order of rows. Raises `DataError` for too many categories."""
        self.rows += batch.rows
        self.moments.merge(batch.moments)
        self._numeric |= batch.numeric
        for name, categories in batch.categories.items():
            found = self._categories[name]
            found |= categories
            if len(found) > _MOST_CATEGORIES:
                raise DataError(
                    f"column {name!r} has more than {_MOST_CATEGORIES:,} categories. Use --leave-out {name}."
                )
        self._kept.append(batch.sample[batch.sample[:, 0] < self._share])
        while self.sampled > 2 * self._most:
            kept, self._share = np.concatenate(self._kept), self._share / 2
            self._kept = [kept[kept[:, 0] < self._share]]

    def ranges(self) -> dict[str, NumberRange]:
        """Return the range of each column of numbers. Numbers far from those of the sample are missing."""
        found = {}
        self._kept = [np.concatenate(self._kept)]
        for place, name in enumerate(self.names):
            if not self._numeric.get(name, False):
                continue
            each = number_range(self._kept[0][:, 1 + place])
            low, high = (value / each.unit for value in (self.moments.low[place], self.moments.high[place]))
            width = 10.0 * (each.high - each.low)
            if not each.far and width > 0 and (high > each.high + width or low < each.low - width):
                example = self.moments.high[place] if high > each.high + width else self.moments.low[place]
                each = replace(each, far=1, example=float(example))
            found[name] = each
        return found

    def columns(self, ranges: dict[str, NumberRange], moments: Moments) -> FeatureColumns:
        """Return the columns like `FeatureColumns` fitted to all rows. `moments` are those of numbers in `ranges`.

        Raises `DataError` for a column with missing values only.
        """
        for name in self.names:
            if name not in self._numeric:
                raise DataError(f"X: column {name!r} contains only missing values. Leave it out.")
        columns = FeatureColumns.__new__(FeatureColumns)
        columns.names = list(self.names)
        columns.numeric = [name for name in self.names if self._numeric[name]]
        columns.categorical = [name for name in self.names if not self._numeric[name]]
        columns.categories = [sorted(self._categories[name]) for name in columns.categorical]
        columns.ranges = ranges
        own, place_of = self.moments, {name: place for place, name in enumerate(self.names)}
        columns.gaps = {name: float(own.missing[place] / max(self.rows, 1)) for name, place in place_of.items()}
        varying = [
            name
            for name, place in place_of.items()
            if (own.low[place] < own.high[place] if self._numeric[name] else len(self._categories[name]) > 1)
            or own.missing[place] > 0
        ]
        columns.used = sorted(varying or self.names)
        names_of = dict(zip(columns.categorical, columns.categories, strict=True))
        place = [place_of[name] for name in columns.used if self._numeric[name]]
        scaler = Scaler.__new__(Scaler)
        constant = ~(moments.low[place] < moments.high[place])
        scaler.mean = np.where(constant & (moments.number[place] > 0), moments.low[place], moments.mean[place])
        scaler.std = np.sqrt(moments.squares[place] / np.maximum(moments.number[place], 1))
        scaler.std[constant] = 1.0
        scaler.categories = [names_of[name] for name in columns.used if name in names_of]
        scaler.seen = [np.ones(len(names), dtype=bool) for names in scaler.categories]
        columns.scaler = scaler
        return columns

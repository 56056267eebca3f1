"""Statistics of comparisons: rank intervals, significant and similar differences, intervals of means.

The functions take frames whose columns are methods; larger is better. Rows are *blocks*: values that are independent of
each other. These are the means of datasets, or the seeds of a single dataset. docs/statistics.md has all formulas and
simulations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from statistics import fmean, stdev
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series
from scipy import stats

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

FEWEST = 3
"""Fewest independent values for an interval. With two, it would reach nine standard deviations to each side."""

FEWEST_DATASETS, FEWEST_SEEDS = 6, 3
"""Smallest numbers of datasets and of seeds for tests."""

MARGIN = 2.0
"""Largest difference, in points, of two methods that are called as good as each other."""

Key = TypeVar("Key", bound=Hashable)


def rank_intervals(blocks: DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lower and upper ends of the interval of each method's rank.

    A rank is at least 1 + the number of methods that are significantly better, and at most the number of methods minus
    those that are significantly worse. Each pair is compared by Student's paired t, one-sided, at (1 - CONFIDENCE) /
    (methods - 1), so each interval has the level CONFIDENCE (Mogstad et al. 2024, "Inference for ranks"). Needs two
    blocks.
    """
    number, methods = blocks.shape
    t = _paired_t(blocks)
    limit = stats.t.isf((1 - CONFIDENCE) / max(methods - 1, 1), number - 1)
    return 1 + (t < -limit).sum(axis=1), methods - (t > limit).sum(axis=1)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p values corrected for their number (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def interval_text(value: float, ends: tuple[float, float] | None, digits: int = 1, sign: str = "") -> str:
    """Return a value with the ends of its interval: `+1.9 [-3.2, 7.0]`."""
    interval = "" if ends is None else f" [{_end(ends[0], digits)}, {_end(ends[1], digits)}]"
    return f"{value:{sign}z.{digits}f}{interval}"


def _end(value: float, digits: int) -> str:
    """Return an end of an interval; one more digit if it would be 0, so that its sign is seen."""
    return f"{value:z.{digits + (value != 0 and not round(value, digits))}f}"


@dataclass(frozen=True)
class MeanDifference:
    """Mean of independent paired differences; larger than 0 is better."""

    points: float
    low: float
    """lower end of the interval; NaN with fewer than `FEWEST` values"""
    high: float
    p: float
    """of Student's t test that the mean is 0, corrected for all differences of the family; NaN without an interval"""
    p_similar: float
    """of the claim that the mean is at least `MARGIN` from 0 (two one-sided t tests), corrected likewise"""

    @property
    def has_interval(self) -> bool:
        """Whether there are enough values for an interval."""
        return not isnan(self.low)

    def __str__(self) -> str:
        ends = (self.low, self.high) if self.has_interval else None
        return interval_text(self.points, ends, sign="+")

    def times(self, sign: float) -> MeanDifference:
        """Return the difference as it is (`sign` 1), or the other way round (-1)."""
        low, high = sorted((sign * self.low, sign * self.high))
        return replace(self, points=sign * self.points, low=low, high=high)

    @property
    def is_significant(self) -> bool:
        """Whether the mean differs from 0 after correction."""
        return self.p < 1 - CONFIDENCE


def compared(family: Mapping[Key, Sequence[float]]) -> dict[Key, MeanDifference]:
    """Return the differences of a family: independent values, at least one each, by name.

    p values are corrected for the number of differences with an interval (Holm 1979). If the first method of a board is
    compared with the others, it was chosen by the same values: with twelve equal methods, 9 % instead of 5 % of boards
    have a significant difference (`tests/report/test_error_and_coverage.py`).
    """
    made = {key: _difference(values) for key, values in family.items()}
    tested = [key for key, each in made.items() if each.has_interval]
    for name in ("p", "p_similar"):
        corrected = holm(np.array([getattr(made[key], name) for key in tested]))
        made |= {key: replace(made[key], **{name: float(p)}) for key, p in zip(tested, corrected, strict=True)}
    return made


def _difference(values: Sequence[float]) -> MeanDifference:
    numbers = np.round(np.array(values, dtype=float), 9)  # the last digits depend on the order of additions
    mean, (low, high) = float(numbers.mean()), interval(numbers)
    if isnan(low):
        return MeanDifference(mean, nan, nan, nan, nan)
    error = float(numbers.std(ddof=1)) / sqrt(len(numbers))
    inside = MARGIN - abs(mean)
    if error == 0:
        return MeanDifference(mean, low, high, float(mean == 0), float(inside <= 0))
    p, p_similar = stats.t.sf([abs(mean) / error, inside / error], len(numbers) - 1)
    return MeanDifference(mean, low, high, float(2 * p), float(p_similar))


def _paired_t(blocks: DataFrame) -> NDArray[np.float64]:
    """Return Student's t of the row's method minus the column's, [methods, methods]; 0 if they never differ."""
    values = blocks.to_numpy()
    values = (values - values.min()) / (np.ptp(values) or 1.0) if values.size else values
    means = values.mean(axis=0)
    # rounded because the last digits depend on the order of additions
    difference = np.round(means[:, None] - means[None, :], 12)
    centred = values - means
    squares = ((centred[:, :, None] - centred[:, None, :]) ** 2).sum(axis=0)
    error = np.round(np.sqrt(squares / (len(values) - 1) / len(values)), 12)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / error)


def robustness(stds: DataFrame, datasets: Sequence[str]) -> Series:
    """Return the mean rank of each method's standard deviation; 1 is the smallest, ties share the mean rank.

    `stds`: standard deviations over seeds, methods x tasks. A method that lacks one has no rank on this task.
    `datasets`: dataset of each task. Ranks are averaged over the tasks of a dataset, then over datasets.
    """
    return stds.astype(float).rank().T.groupby([*datasets]).mean().mean()


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Return Student's t interval of the mean of independent values. NaNs for fewer than `FEWEST`."""
    numbers = [float(value) for value in values]
    if len(numbers) < FEWEST:
        return nan, nan
    mean = fmean(numbers)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(numbers) - 1)) * stdev(numbers) / sqrt(len(numbers))
    return mean - half, mean + half

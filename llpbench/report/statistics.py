"""Statistics of comparisons: rank intervals, significant differences, intervals of means and ratios.

The functions take frames whose columns are methods; larger is better. Rows are *blocks*: values that are independent of
one another. These are the means of datasets, or the seeds of a single dataset. docs/statistics.md has all formulas and
simulations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import nan, sqrt
from statistics import fmean, stdev
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series
from scipy import stats

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

FEWEST = 3
"""Fewest independent values for an interval. With two, it would reach nine standard deviations to each side."""

MOST_METHODS = 1_000
"""Largest number of methods whose pairs are compared. The comparison of more needs gigabytes."""


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


def letters(p: NDArray[np.float64]) -> list[str]:
    """Return letters such as "A" or "AB" by method, from p values of all pairs with the best method first.

    The best method leads A. Down the table, the first method that differs from all leaders so far leads the next
    letter. A method has the letters of all leaders from which it does not differ significantly.
    """
    differs = p < 1 - CONFIDENCE
    leaders: list[int] = []
    for method in range(len(differs)):
        if differs[method, leaders].all():
            leaders.append(method)
    return [
        "".join(_letter(n) for n, leader in enumerate(leaders) if not differs[method, leader])
        for method in range(len(differs))
    ]


def _letter(index: int) -> str:
    """Return A for 0, Z for 25, a for 26, and a number in brackets from 52 on."""
    return ascii_letters.swapcase()[index] if index < len(ascii_letters) else f"({index + 1})"


def paired_p(blocks: DataFrame) -> NDArray[np.float64]:
    """Return p values of Student's paired t test, two-sided, [methods, methods], corrected for all pairs after Holm.

    If all methods are equal, the probability of any p below 0.05 is at most 0.05 (for normal differences). The diagonal
    is 1.
    """
    methods = len(blocks.columns)
    pairs = np.triu_indices(methods, 1)
    matrix = np.ones((methods, methods))
    matrix[pairs] = holm(2 * stats.t.sf(np.abs(_paired_t(blocks)[pairs]), len(blocks) - 1))
    return np.minimum(matrix, matrix.T)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p values corrected for their number (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def difference_p(values: Sequence[float]) -> float:
    """Return p of Student's t test that independent differences have mean 0. NaN for fewer than `FEWEST`."""
    if len(values) < FEWEST:
        return nan
    return float(paired_p(DataFrame({"difference": values, "zero": 0.0}))[0, 1])


def _paired_t(blocks: DataFrame) -> NDArray[np.float64]:
    """Return Student's t of the row's method minus the column's, [methods, methods]; 0 if they never differ."""
    values = blocks.to_numpy()
    values = (values - values.min()) / (np.ptp(values) or 1.0) if values.size else values
    means = values.mean(axis=0)
    # rounded because the last digits depend on the order of additions
    difference = np.round(means[:, None] - means[None, :], 12)
    squares = np.zeros_like(difference)
    for block in values - means:
        squares += (block[:, None] - block[None, :]) ** 2
    error = np.round(np.sqrt(squares / (len(values) - 1) / len(values)), 12)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / error)


def robustness(stds: DataFrame, datasets: Sequence[str]) -> Series:
    """Return the mean rank of each method's standard deviation; 1 is the smallest, ties share the mean rank.

    `stds`: standard deviations over seeds, methods x tasks. A method that lacks one has no rank on this task.
    `datasets`: dataset of each task. Ranks are averaged over the tasks of a dataset, then over datasets.
    """
    return stds.astype(float).rank().T.groupby([*datasets]).mean().mean()


def pareto_front(cost: Series, value: Series) -> list[Any]:
    """Return the labels of methods that no other method beats, cheapest first.

    One method beats another if it costs no more, is no worse, and is better in one of both.
    """
    points = DataFrame({"cost": cost, "value": value}).sort_values("cost", kind="stable")

    def is_beaten(price: float, worth: float) -> bool:
        others = points[(points["cost"] <= price) & (points["value"] >= worth)]
        return bool(((others["cost"] < price) | (others["value"] > worth)).any())

    return [label for label, price, worth in points.itertuples() if not is_beaten(price, worth)]


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Return Student's t interval of the mean of independent values. NaNs for fewer than `FEWEST`."""
    numbers = [float(value) for value in values]
    if len(numbers) < FEWEST:
        return nan, nan
    mean = fmean(numbers)
    half = t_quantile(len(numbers) - 1) * stdev(numbers) / sqrt(len(numbers))
    return mean - half, mean + half


@cache
def t_quantile(freedom: int) -> float:
    """Return half the width of an interval in standard errors."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def ratio_interval(pairs: Iterable[tuple[float, ...]]) -> tuple[float, float]:
    """Return the jackknife interval of (sum of first) / (sum of second) of independent pairs.

    Student's t has two degrees of freedom fewer than pairs, because two sums are estimated. NaNs for fewer than
    `FEWEST` pairs, and if the second sum is not positive without one of them.
    """
    terms = np.array([*pairs], dtype=float).reshape(-1, 2)
    number = len(terms)
    without = terms.sum(axis=0) - terms
    if number < FEWEST or (without[:, 1] <= 0).any():
        return nan, nan
    ratios = without[:, 0] / without[:, 1]
    error = sqrt((number - 1) / number * ((ratios - ratios.mean()) ** 2).sum())
    ratio, half = terms[:, 0].sum() / terms[:, 1].sum(), t_quantile(number - 2) * error
    return float(ratio - half), float(ratio + half)

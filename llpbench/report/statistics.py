"""Statistics of comparisons: ranks with intervals, significant differences, tests, win rates, trade-offs.

Pure functions of frames whose columns are methods; larger is better. What is compared is a method's *dataset means*:
over the bag sizes of a dataset, of the means over seeds. They alone are independent of one another, so they are the
*blocks* of every test; bag sizes and seeds of one dataset are not. Of a single dataset the blocks are its seeds, and a
difference holds for that table alone. All formulas, and the simulations behind them: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import nan, sqrt
from statistics import fmean, stdev
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Index, Series
from scipy import stats

from llpbench.report.boards import FEWEST_DATASETS

CONFIDENCE = 0.95
"""Level of every interval that a report shows."""

MOST_METHODS = 1_000
"""whose pairs are all compared: those of ten times as many would take gigabytes, and would not differ significantly"""


@dataclass(frozen=True, eq=False)
class Friedman:
    """Friedman's test that all methods rank alike over datasets, and how far ranks are apart that differ (Nemenyi)."""

    statistic: float
    """corrected for ties; chi-squared with methods - 1 degrees of freedom if nothing differs"""
    p: float
    """by that approximation, which is good from about 10 datasets and 5 methods on, and too large with fewer"""
    datasets: int
    methods: int
    critical_difference: float
    """mean ranks that are further apart differ at 0.05"""
    mean_ranks: Series
    """by method"""


def mean_ranks(blocks: DataFrame) -> Series:
    """Mean over blocks of the method's rank, by method: 1 is best, ties share the mean of their ranks."""
    return blocks.rank(axis="columns", ascending=False).mean().rename("mean_rank")


def rank_intervals(blocks: DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of the interval of each method's rank by its mean over all blocks like these.

    From 1 + the number of methods that are above it to the number of methods - those that are below it, by Student's
    paired t, one-sided, at (1 - CONFIDENCE) / (methods - 1). Each interval holds the true rank at `CONFIDENCE` (Mogstad
    et al., 2024, "Inference for ranks"): to miss it, one of methods - 1 pairs has to be judged the wrong way round.
    Needs two blocks.
    """
    number, methods = blocks.shape
    t = _paired_t(blocks)
    limit = stats.t.isf((1 - CONFIDENCE) / max(methods - 1, 1), number - 1)
    return 1 + (t < -limit).sum(axis=1), methods - (t > limit).sum(axis=1)


def letters(p: NDArray[np.float64]) -> list[str]:
    """Return "A", "AB", ... by method, of p values of all pairs, the best method first.

    The best method leads A. Down the table, the first that differs from the leaders of all letters before leads the
    next. A method has the letters of all leaders from which it does not differ: whose p is not below 1 - CONFIDENCE.
    """
    apart = p < 1 - CONFIDENCE
    leaders: list[int] = []
    for method in range(len(apart)):
        if apart[method, leaders].all():
            leaders.append(method)
    return [
        "".join(_letter(n) for n, lead in enumerate(leaders) if not apart[method, lead]) for method in range(len(apart))
    ]


def _letter(index: int) -> str:
    """0: A, 25: Z, 26: a; beyond 51 numbers in brackets."""
    return ascii_letters.swapcase()[index] if index < len(ascii_letters) else f"({index + 1})"


def comparisons(blocks: DataFrame) -> DataFrame | None:
    """Return p values of Student's paired t test, methods by methods, corrected for all pairs after Holm.

    None with fewer than 2 methods or 2 blocks. The chance that any two equal methods get a p below 0.05 is at most
    0.05, if differences between blocks are normal.
    """
    if len(blocks.columns) < 2 or len(blocks) < 2:
        return None
    return _matrix(paired_p(blocks), blocks.columns)


def paired_p(blocks: DataFrame) -> NDArray[np.float64]:
    """Return p values of Student's paired t, two-sided: all pairs, corrected after Holm; diagonal 1."""
    t = _paired_t(blocks)
    return _all_pairs(2 * stats.t.sf(np.abs(t[np.triu_indices(len(t), 1)]), len(blocks) - 1), len(t))


def _all_pairs(p: NDArray[np.float64], methods: int) -> NDArray[np.float64]:
    """p values of all pairs, in the order of `triu_indices`, corrected after Holm, as a matrix; diagonal 1."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return _symmetric(corrected, methods)


def _symmetric(p: NDArray[np.float64], methods: int) -> NDArray[np.float64]:
    """p values of all pairs, in the order of `triu_indices`, as a matrix; diagonal 1."""
    whole = np.ones((methods, methods))
    whole[np.triu_indices(methods, 1)] = p
    return np.minimum(whole, whole.T)


def friedman(datasets: DataFrame) -> Friedman | None:
    """Friedman's test of dataset means; None with fewer than 3 methods or 2 datasets.

    Demšar, 2006, "Statistical Comparisons of Classifiers over Multiple Data Sets".
    """
    number, methods = datasets.shape
    if methods < 3 or number < 2:
        return None
    # scipy divides 0 by 0 where no two methods differ on any dataset
    tied = bool(datasets.eq(datasets.iloc[:, 0], axis="index").all(axis=None))
    statistic, p = (0.0, 1.0) if tied else stats.friedmanchisquare(*datasets.to_numpy().T)
    return Friedman(
        statistic=float(statistic),
        p=float(p),
        datasets=number,
        methods=methods,
        critical_difference=critical_difference(methods, number),
        mean_ranks=mean_ranks(datasets),
    )


@cache
def critical_difference(methods: int, datasets: int, *, alpha: float = 0.05) -> float:
    """How far apart two mean ranks must be to differ at `alpha`, by Nemenyi's test (Demšar, 2006, section 3.2)."""
    quantile = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / sqrt(2)
    return float(quantile * sqrt(methods * (methods + 1) / (6 * datasets)))


def wilcoxon_holm(datasets: DataFrame) -> DataFrame | None:
    """p values of Wilcoxon's signed-rank test of dataset means, methods by methods, corrected for all pairs after Holm.

    None with fewer than 2 methods or `FEWEST_DATASETS` datasets: before correction no p is below 2 / 2**datasets.
    Below about 1e-15 p is rounded, even to 0.
    """
    if len(datasets.columns) < 2 or len(datasets) < FEWEST_DATASETS:
        return None
    first, second = np.triu_indices(len(datasets.columns), 1)
    values = datasets.to_numpy().T  # [methods, datasets]
    # zsplit: ranks of zero differences are split evenly (Demšar, 2006, section 3.1.3). With the default, two methods
    # that never differ have p NaN, which then spoils the correction. exact: conservative with ties; the default would
    # enumerate all signs of each pair with ties, a second a pair at 13 datasets
    tested = stats.wilcoxon(values[first], values[second], zero_method="zsplit", method="exact", axis=1)
    return _matrix(_all_pairs(np.asarray(tested.pvalue), len(values)), datasets.columns)


def win_rates(runs: DataFrame) -> DataFrame:
    """Share of runs in which the row's method is above the column's, methods by methods.

    `runs`: whose first level of the index names what seeds are repeated on. Ties count half, each of these weighs
    equally, the diagonal is NaN.
    """
    shares = []
    for _, block in runs.groupby(level=0):
        values = block.to_numpy()  # [seeds, methods]
        ours, theirs = values[:, :, None], values[:, None, :]
        shares.append(((ours > theirs) + 0.5 * (ours == theirs)).mean(axis=0))
    rates = np.mean(shares, axis=0)
    np.fill_diagonal(rates, nan)
    return _matrix(rates, runs.columns)


def robustness(stds: DataFrame) -> Series:
    """Mean over columns of the method's rank by standard deviation: 1 is the smallest, ties share the mean rank.

    `stds`: standard deviations over seeds, index methods, columns blocks (or datasets).
    """
    return stds.astype(float).rank().mean(axis="columns")


def pareto_front(cost: Series, value: Series) -> list[Any]:
    """Labels of the methods that no other beats, cheapest first.

    One method beats another if it costs no more, is no worse, and is better in one of both.
    """
    points = DataFrame({"cost": cost, "value": value}).sort_values("cost", kind="stable")

    def is_beaten(price: float, worth: float) -> bool:
        near = points[(points["cost"] <= price) & (points["value"] >= worth)]
        return bool(((near["cost"] < price) | (near["value"] > worth)).any())

    return [label for label, price, worth in points.itertuples() if not is_beaten(price, worth)]


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Student's t interval of the mean of independent values, such as seeds; NaNs for fewer than two."""
    found = [float(value) for value in values]
    if len(found) < 2:
        return nan, nan
    mean = fmean(found)
    half = t_quantile(len(found) - 1) * stdev(found) / sqrt(len(found))
    return mean - half, mean + half


@cache
def t_quantile(freedom: int) -> float:
    """Return how many standard errors an interval goes on either side."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def ratio_interval(pairs: Iterable[tuple[float, ...]]) -> tuple[float, float]:
    """Jackknife interval of (sum of first) / (sum of second), of independent pairs such as one a dataset.

    Student's t, with two degrees of freedom fewer than pairs since two sums are estimated (one fewer covers 0.91 where
    0.95 is wanted). NaNs for fewer than three pairs, and where the second sum is not above 0 without one of them.
    """
    found = np.array([*pairs], dtype=float).reshape(-1, 2)
    number = len(found)
    without = found.sum(axis=0) - found
    if number < 3 or (without[:, 1] <= 0).any():
        return nan, nan
    ratios = without[:, 0] / without[:, 1]
    error = sqrt((number - 1) / number * ((ratios - ratios.mean()) ** 2).sum())
    ratio, half = found[:, 0].sum() / found[:, 1].sum(), t_quantile(number - 2) * error
    return float(ratio - half), float(ratio + half)


def _paired_t(blocks: DataFrame) -> NDArray[np.float64]:
    """Student's t of the row's method minus the column's, [methods, methods]; 0 where they never differ."""
    values = blocks.to_numpy()
    values = (values - values.min()) / ((values.max() - values.min()) or 1.0)
    means = values.mean(axis=0)
    # the last digits depend on the order of additions, and must make no difference
    difference = np.round(means[:, None] - means[None, :], 12)
    squares = np.zeros_like(difference)
    for each in values - means:
        squares += (each[:, None] - each[None, :]) ** 2
    error = np.round(np.sqrt(squares / (len(values) - 1) / len(values)), 12)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / error)


def _matrix(values: NDArray[np.float64], methods: Index) -> DataFrame:
    return DataFrame(values, index=methods, columns=methods)

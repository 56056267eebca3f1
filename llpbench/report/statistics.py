"""Statistics of comparisons: ranks with intervals, what can be told apart, tests, win rates, trade-offs.

Pure functions of a data frame `scores` with one row a run and the columns `method` (a row's label), `dataset`,
`bag_size`, `seed` and `value` (a float; larger is better). What is compared is a method's *dataset means*: over the
bag sizes of a dataset, of the means over seeds. They alone are independent of one another, so they are the blocks of
every test; bag sizes and seeds of one dataset are not. Of a single dataset the blocks are its seeds, and what is found
holds for that table alone. All formulas, and the simulations behind them: docs/statistics.md.

Values are compared within runs, since the seed sets the split and the bags. So a frame to compare methods in has to be
complete: every method has one finite value for every run that occurs, else ValueError names the first that is lacking.
Seeds may differ between bag sizes.

Point estimates are sums rounded once (`fmean`): neither the order of rows nor that of methods can make or break a tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite, nan, sqrt
from statistics import fmean, stdev
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, MultiIndex, Series
from scipy import stats

from llpbench.report.boards import FEWEST_DATASETS

RUN = ["dataset", "bag_size", "seed"]
BLOCK = ["dataset", "bag_size"]


MOST_METHODS = 1_000
"""whose pairs are all compared: those of ten times as many would take gigabytes, and could not be told apart"""


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


def dataset_means(scores: DataFrame) -> DataFrame:
    """Mean over bag sizes of the mean over seeds: index datasets, columns methods, both sorted."""
    return _dataset_means(_complete(scores))


def blocks(scores: DataFrame) -> DataFrame:
    """What intervals and tests take for independent, blocks by methods.

    Several datasets: their means. One: its seeds, as far as all of its bag sizes have them; each is the mean over
    these.
    """
    return _blocks(_complete(scores))


def mean_ranks(scores: DataFrame) -> Series:
    """Mean over datasets of the method's rank, by method: 1 is best, ties share the mean of their ranks."""
    return _mean_ranks(dataset_means(scores))


def standings(scores: DataFrame, *, level: float = 0.95) -> DataFrame:
    """Where methods stand, and how sure that is; the best mean first, equal means by name.

    Columns, by method:
        mean: over datasets
        rank: of the mean: 1, 1, 3
        mean_rank: as `mean_ranks`
        low, high: interval of the rank of the mean over all datasets of which these are a sample. From 1 + the number
            of methods that are above it to the number of methods - those that are below it, by Student's paired t over
            `blocks`, one-sided, at (1 - level) / (methods - 1). Each interval holds the true rank at `level` (Mogstad
            et al., 2024, "Inference for ranks"): to miss it, one of methods - 1 pairs has to be told the wrong way
            round.
        letters: "A", "AB", ...: the best method leads A. Down the table, the first that can be told apart from the
            leaders of all letters before leads the next. A method has the letters of all leaders that it cannot be
            told apart from. Told apart: p of `comparisons` is below 1 - level.

    With fewer than two blocks nothing is known, and of more than `MOST_METHODS` methods nothing is computed: `low` and
    `high` are <NA> and `letters` is "".
    """
    _check_level(level)
    runs = _complete(scores)
    datasets = _dataset_means(runs)
    means = {method: fmean(datasets[method]) for method in datasets}
    table = DataFrame({"mean": means}).rename_axis("method")
    table["rank"] = table["mean"].rank(method="min", ascending=False).astype(int)
    table["mean_rank"] = _mean_ranks(datasets)
    table = table.loc[sorted(means, key=lambda method: (-means[method], method))]
    found = _blocks(runs)[table.index]
    if len(found) < 2 or len(table) > MOST_METHODS:
        unknown = Series(dtype="Int64", index=table.index)
        return table.assign(low=unknown, high=unknown, letters="")
    low, high = rank_intervals(found, level)
    return table.assign(
        low=Series(low, table.index, dtype="Int64"),
        high=Series(high, table.index, dtype="Int64"),
        letters=_letters(paired_p(found) < 1 - level),
    )


def rank_intervals(found: DataFrame, level: float = 0.95) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ends of the interval of each method's rank, of blocks by methods, as `standings` has them."""
    number, methods = found.shape
    t = _paired_t(found)
    limit = stats.t.isf((1 - level) / max(methods - 1, 1), number - 1)
    return 1 + (t < -limit).sum(axis=1), methods - (t > limit).sum(axis=1)


def comparisons(scores: DataFrame) -> DataFrame | None:
    """p values of Student's paired t test over `blocks`, methods by methods, corrected for all pairs after Holm.

    None with fewer than 2 methods or 2 blocks. The chance that any two equal methods get a p below 0.05 is at most
    0.05, if differences between blocks are normal.
    """
    found = blocks(scores)
    if len(found.columns) < 2 or len(found) < 2:
        return None
    return _matrix(paired_p(found), found.columns)


def paired_p(found: DataFrame) -> NDArray[np.float64]:
    """p values of Student's paired t, two-sided, of blocks by methods: all pairs, corrected after Holm; diagonal 1."""
    t = _paired_t(found)
    return _all_pairs(2 * stats.t.sf(np.abs(t[np.triu_indices(len(t), 1)]), len(found) - 1), len(t))


def _all_pairs(p: NDArray[np.float64], methods: int) -> NDArray[np.float64]:
    """p values of all pairs, in the order of `triu_indices`, corrected after Holm, as a matrix; diagonal 1."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    whole = np.ones((methods, methods))
    whole[np.triu_indices(methods, 1)] = corrected
    return np.minimum(whole, whole.T)


def friedman(scores: DataFrame) -> Friedman | None:
    """Friedman's test over datasets; None with fewer than 3 methods or 2 datasets.

    Demšar, 2006, "Statistical Comparisons of Classifiers over Multiple Data Sets".
    """
    found = dataset_means(scores)
    number, methods = found.shape
    if methods < 3 or number < 2:
        return None
    # scipy divides 0 by 0 where no dataset tells any two methods apart
    tied = bool(found.eq(found.iloc[:, 0], axis="index").all(axis=None))
    statistic, p = (0.0, 1.0) if tied else stats.friedmanchisquare(*(found[method] for method in found))
    return Friedman(
        statistic=float(statistic),
        p=float(p),
        datasets=number,
        methods=methods,
        critical_difference=critical_difference(methods, number),
        mean_ranks=_mean_ranks(found),
    )


@cache
def critical_difference(methods: int, datasets: int, *, alpha: float = 0.05) -> float:
    """How far apart two mean ranks must be to differ at `alpha`, by Nemenyi's test (Demšar, 2006, section 3.2)."""
    quantile = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / sqrt(2)
    return float(quantile * sqrt(methods * (methods + 1) / (6 * datasets)))


def nemenyi(scores: DataFrame) -> DataFrame | None:
    """p values of Nemenyi's test that two methods rank alike, methods by methods; None where `friedman` is."""
    from scikit_posthocs import posthoc_nemenyi_friedman  # type: ignore[import-untyped]

    found = dataset_means(scores)
    if len(found.columns) < 3 or len(found) < 2:
        return None
    return _matrix(posthoc_nemenyi_friedman(found.to_numpy()).to_numpy(), found.columns)


def wilcoxon_holm(scores: DataFrame) -> DataFrame | None:
    """p values of Wilcoxon's signed-rank test over datasets, methods by methods, corrected for all pairs after Holm.

    None with fewer than 2 methods or `FEWEST_DATASETS` datasets: before correction no p is below 2 / 2**datasets.
    Below about 1e-15 p is rounded, even to 0.
    """
    found = dataset_means(scores)
    if len(found.columns) < 2 or len(found) < FEWEST_DATASETS:
        return None
    first, second = np.triu_indices(len(found.columns), 1)
    values = found.to_numpy().T  # [methods, datasets]
    # zsplit: ranks of zero differences are split evenly (Demšar, 2006, section 3.1.3). With the default, two methods
    # that never differ have p NaN, which then spoils the correction. exact: conservative with ties; the default would
    # enumerate all signs of each pair with ties, a second a pair at 13 datasets
    tested = stats.wilcoxon(values[first], values[second], zero_method="zsplit", method="exact", axis=1)
    return _matrix(_all_pairs(np.asarray(tested.pvalue), len(values)), found.columns)


def win_rates(scores: DataFrame) -> DataFrame:
    """Share of runs in which the row's method is above the column's, methods by methods.

    Ties count half, every block weighs equally, the diagonal is NaN.
    """
    runs = _complete(scores)
    shares = []
    for _, block in runs.groupby(level=BLOCK):
        values = block.to_numpy()  # [seeds, methods]
        ours, theirs = values[:, :, None], values[:, None, :]
        shares.append(((ours > theirs) + 0.5 * (ours == theirs)).mean(axis=0))
    rates = np.mean(shares, axis=0)
    np.fill_diagonal(rates, nan)
    return _matrix(rates, runs.columns)


def robustness(stds: DataFrame) -> Series:
    """Mean over columns of the method's rank by standard deviation: 1 is the smallest, ties share the mean rank.

    `stds`: standard deviations over seeds, index methods, columns blocks (or datasets). Raises ValueError for any that
    is not finite.
    """
    if stds.empty:
        raise ValueError("there are no standard deviations to rank")
    stds = stds.astype(float)
    lacking = np.argwhere(~np.isfinite(stds.to_numpy()))
    if len(lacking):
        row, column = lacking[0]
        raise ValueError(f"method {stds.index[row]!r} has no finite standard deviation for {stds.columns[column]!r}")
    return stds.rank().mean(axis="columns")


def pareto_front(cost: Series, value: Series) -> list[str]:
    """Labels of the methods that no other beats, cheapest first, equal ones by name.

    One method beats another if it costs no more, is no worse, and is better in one of both. Raises ValueError unless
    both series have the same labels, each once, and finite numbers.
    """
    if set(cost.index) != set(value.index) or not (cost.index.is_unique and value.index.is_unique):
        raise ValueError("`cost` and `value` must have the same methods, each once")
    points = {label: (float(cost[label]), float(value[label])) for label in sorted(cost.index)}
    for label, point in points.items():
        if not all(map(isfinite, point)):
            raise ValueError(f"method {label!r} needs a finite cost and value, got {point}")

    def beaten(point: tuple[float, float]) -> bool:
        return any(c <= point[0] and v >= point[1] and (c, v) != point for c, v in points.values())

    return sorted((label for label in points if not beaten(points[label])), key=lambda label: points[label][0])


def interval(values: Iterable[float], level: float = 0.95) -> tuple[float, float]:
    """Student's t interval of the mean of independent values, such as a method's over seeds; NaNs for fewer than two.

    Raises ValueError for a value that is not finite.
    """
    _check_level(level)
    found = [float(value) for value in values]
    if not all(map(isfinite, found)):
        raise ValueError(f"an interval needs finite values, got {found}")
    if len(found) < 2:
        return nan, nan
    mean = fmean(found)
    half = float(stats.t.ppf((1 + level) / 2, len(found) - 1)) * stdev(found) / sqrt(len(found))
    return mean - half, mean + half


def ratio_interval(pairs: Iterable[tuple[float, float]], level: float = 0.95) -> tuple[float, float]:
    """Jackknife interval of (sum of first) / (sum of second), of independent pairs such as one a dataset.

    Student's t, with two degrees of freedom fewer than pairs since two sums are estimated (one fewer covers 0.91 where
    0.95 is wanted). NaNs for fewer than three pairs, and where the second sum is not above 0 without one of them.
    """
    _check_level(level)
    found = np.array([*pairs], dtype=float).reshape(-1, 2)
    number = len(found)
    without = found.sum(axis=0) - found
    if number < 3 or (without[:, 1] <= 0).any():
        return nan, nan
    ratios = without[:, 0] / without[:, 1]
    error = sqrt((number - 1) / number * ((ratios - ratios.mean()) ** 2).sum())
    ratio, half = found[:, 0].sum() / found[:, 1].sum(), float(stats.t.ppf((1 + level) / 2, number - 2)) * error
    return float(ratio - half), float(ratio + half)


def _by_run(scores: DataFrame) -> DataFrame:
    """Index runs, columns methods, both sorted; NaN for what is lacking or not finite."""
    if absent := [column for column in ("method", *RUN, "value") if column not in scores]:
        raise ValueError(f"the scores have no column {absent[0]!r}")
    keys = scores[["method", *RUN]]
    if (nameless := keys.isna().any(axis="columns")).any():
        raise ValueError(f"every score needs a method, dataset, bag size and seed, got {_first(keys, nameless)}")
    if (again := keys.duplicated()).any():
        raise ValueError(f"a method can have one value for a run, but there are two: {_first(keys, again)}")
    values = scores["value"].astype(float)
    finite = scores.assign(value=values.where(np.isfinite(values)))
    return finite.pivot(index=RUN, columns="method", values="value")


def _complete(scores: DataFrame) -> DataFrame:
    """As `_by_run`, without NaN."""
    values = _by_run(scores)
    if values.empty:
        raise ValueError("there are no runs to compare")
    lacking = np.argwhere(values.isna().to_numpy())
    if len(lacking):
        row, column = lacking[0]
        dataset, bag_size, seed = values.index[row]
        raise ValueError(
            f"method {values.columns[column]!r} has no finite value for dataset {dataset!r}, bag size {bag_size}, "
            f"seed {seed}. Compare on the runs that all methods share."
        )
    return values


def _first(keys: DataFrame, where: Series) -> str:
    return ", ".join(f"{name}={key}" for name, key in zip(keys, keys[where].iloc[0], strict=True))


def _dataset_means(runs: DataFrame) -> DataFrame:
    sizes = _means(runs, BLOCK)
    return _means(sizes, ["dataset"])


def _blocks(runs: DataFrame) -> DataFrame:
    means = _dataset_means(runs)
    if len(means) > 1:
        return means
    whole = runs.groupby(level="seed").size() == len(runs.index.unique("bag_size"))
    shared = runs[runs.index.get_level_values("seed").isin(whole.index[whole])]
    return _means(shared, ["seed"]) if len(shared) else means


def _means(values: DataFrame, by: Sequence[str]) -> DataFrame:
    """Means of the rows that share some levels of the index."""
    found = {key: [fmean(each) for each in group.to_numpy().T] for key, group in values.groupby(level=[*by])}
    index = MultiIndex.from_tuples(found, names=[*by])
    means = DataFrame(list(found.values()), index, columns=values.columns)
    return means if len(by) > 1 else means.set_axis(index.get_level_values(0))


def _mean_ranks(datasets: DataFrame) -> Series:
    return datasets.rank(axis="columns", ascending=False).mean().rename("mean_rank")


def _paired_t(found: DataFrame) -> NDArray[np.float64]:
    """Student's t of the row's method minus the column's over blocks, [methods, methods]; 0 where they never differ."""
    values = found.to_numpy()
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


def _letters(apart: NDArray[np.bool_]) -> list[str]:
    """Of each method, the letters of the leaders that it cannot be told apart from; the best method first."""
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


def _matrix(values: NDArray[np.float64], methods: Sequence[str]) -> DataFrame:
    return DataFrame(values, index=list(methods), columns=list(methods))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got level={level}")

"""Statistics of comparisons: ranks with intervals, groups that cannot be told apart, tests, win rates, trade-offs.

Pure functions of a data frame `scores` with one row a run and the columns `method` (a row's label), `dataset`,
`bag_size`, `seed` and `value` (a float; larger is better). A block is a (dataset, bag size); a method's value in it is
its mean over seeds, and all blocks weigh equally. Values are compared within runs, since the seed sets the split and
the bags. So a frame to compare methods in has to be complete: every method has one finite value for every run that
occurs, else ValueError names the first that is lacking. Seeds may differ between blocks.

Point estimates are sums rounded once (`fmean`): neither the order of rows nor that of methods can make or break a tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, MultiIndex, Series
from scipy import stats

RUN = ["dataset", "bag_size", "seed"]
BLOCK = ["dataset", "bag_size"]


@dataclass(frozen=True, eq=False)
class Friedman:
    """Friedman's test that all methods rank alike over blocks, and how far ranks must be apart to differ (Nemenyi)."""

    statistic: float
    """corrected for ties; chi-squared with methods - 1 degrees of freedom if nothing differs"""
    p: float
    """by that approximation, which is good from about 10 blocks and 5 methods on"""
    blocks: int
    methods: int
    critical_difference: float
    """mean ranks that are further apart differ at 0.05"""
    mean_ranks: Series
    """by method"""


def block_means(scores: DataFrame) -> DataFrame:
    """Mean over seeds: index (dataset, bag_size), columns methods, both sorted."""
    return _block_means(_complete(scores))


def mean_ranks(scores: DataFrame) -> Series:
    """Mean over blocks of the method's rank, by method: 1 is best, ties share the mean of their ranks."""
    return _mean_ranks(block_means(scores))


def standings(scores: DataFrame, *, draws: int = 2000, seed: int = 0, level: float = 0.95) -> DataFrame:
    """Where methods stand, and how sure that is; the best mean first, equal means by name.

    Columns, by method:
        mean: over blocks
        rank: of the mean: 1, 1, 3
        mean_rank: as `mean_ranks`
        low, high: interval of the rank at that level; always holds the rank
        group: "A", "B", ...: down the table, a method is of its leader's group unless the interval of leader minus
            method lies wholly above 0; then it leads the next group

    Intervals are percentiles over `draws` draws of a paired, nested bootstrap: datasets are drawn with replacement,
    each with all of its bag sizes, and in each of these the seeds, the same for all methods. Only `low`, `high` and
    `group` depend on `draws` and `seed`.

    What is not there cannot be resampled. With one dataset the intervals tell how sure the order is on this dataset;
    with one seed a block they take its noise for none; with few of either they are too narrow. With one dataset and
    one seed a block nothing is known: `low` and `high` are <NA> and `group` is "".
    """
    if draws < 1:
        raise ValueError(f"`draws` must be a positive integer, however: draws={draws}")
    _check_level(level)
    runs = _complete(scores)
    blocks = _block_means(runs)
    means = {method: fmean(blocks[method]) for method in blocks}
    table = DataFrame({"mean": means}).rename_axis("method")
    table["rank"] = table["mean"].rank(method="min", ascending=False).astype(int)
    table["mean_rank"] = _mean_ranks(blocks)
    table = table.loc[sorted(means, key=lambda method: (-means[method], method))]
    if len(runs) == len(blocks) and len(blocks.index.unique("dataset")) == 1:
        low = high = Series(dtype="Int64", index=table.index)
        return table.assign(low=low, high=high, group="")
    sample = _bootstrap(runs[table.index], draws, seed)
    tail = (1 - level) / 2
    ranks = stats.rankdata(-sample, method="min", axis=1)
    low, high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf").astype(int)
    return table.assign(
        low=Series(np.minimum(low, table["rank"]), table.index, dtype="Int64"),
        high=Series(np.maximum(high, table["rank"]), table.index, dtype="Int64"),
        group=_groups(sample, tail),
    )


def friedman(scores: DataFrame) -> Friedman | None:
    """Friedman's test over blocks; None with fewer than 3 methods or 2 blocks.

    Blocks count as independent, which the bag sizes of one dataset are not quite: p is rather too small. Demšar, 2006,
    "Statistical Comparisons of Classifiers over Multiple Data Sets".
    """
    blocks = block_means(scores)
    number, methods = blocks.shape
    if methods < 3 or number < 2:
        return None
    # scipy divides 0 by 0 where no block tells any two methods apart
    tied = bool(blocks.eq(blocks.iloc[:, 0], axis="index").all(axis=None))
    statistic, p = (0.0, 1.0) if tied else stats.friedmanchisquare(*(blocks[method] for method in blocks))
    return Friedman(
        statistic=float(statistic),
        p=float(p),
        blocks=number,
        methods=methods,
        critical_difference=critical_difference(methods, number),
        mean_ranks=_mean_ranks(blocks),
    )


def critical_difference(methods: int, blocks: int, *, alpha: float = 0.05) -> float:
    """How far apart two mean ranks must be to differ at `alpha`, by Nemenyi's test (Demšar, 2006, section 3.2)."""
    quantile = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / sqrt(2)
    return float(quantile * sqrt(methods * (methods + 1) / (6 * blocks)))


def nemenyi(scores: DataFrame) -> DataFrame | None:
    """p values of Nemenyi's test that two methods rank alike, methods by methods; None where `friedman` is."""
    from scikit_posthocs import posthoc_nemenyi_friedman  # type: ignore[import-untyped]

    blocks = block_means(scores)
    if len(blocks.columns) < 3 or len(blocks) < 2:
        return None
    return _matrix(posthoc_nemenyi_friedman(blocks.to_numpy()).to_numpy(), blocks.columns)


def wilcoxon_holm(scores: DataFrame) -> DataFrame | None:
    """p values of Wilcoxon's signed-rank test over blocks, methods by methods, corrected for all pairs after Holm.

    None with fewer than 2 methods or 2 blocks. Before correction no p is below 2 / 2**blocks, so fewer than 6 blocks
    can never give one below 0.05. Below about 1e-15 p is rounded, even to 0. Blocks count as independent, as in
    `friedman`.
    """
    from scikit_posthocs import posthoc_wilcoxon

    blocks = block_means(scores)
    if len(blocks.columns) < 2 or len(blocks) < 2:
        return None
    # zsplit: ranks of zero differences are split evenly (Demšar, 2006, section 3.1.3). With the default, two methods
    # that never differ have p NaN, which then spoils the correction. exact: conservative with ties; the default would
    # enumerate all signs of each pair with ties, a second a pair at 13 blocks
    p = posthoc_wilcoxon(
        blocks.melt(), val_col="value", group_col="method", zero_method="zsplit", method="exact", p_adjust="holm"
    )
    return _matrix(p.to_numpy(), blocks.columns)


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
            raise ValueError(f"method {label!r} needs a finite cost and value, however: {point}")

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
        raise ValueError(f"an interval needs finite values, however: {found}")
    if len(found) < 2:
        return nan, nan
    mean = fmean(found)
    half = float(stats.t.ppf((1 + level) / 2, len(found) - 1)) * stdev(found) / sqrt(len(found))
    return mean - half, mean + half


def _by_run(scores: DataFrame) -> DataFrame:
    """Index runs, columns methods, both sorted; NaN for what is lacking or not finite."""
    if absent := [column for column in ("method", *RUN, "value") if column not in scores]:
        raise ValueError(f"the scores have no column {absent[0]!r}")
    keys = scores[["method", *RUN]]
    if (nameless := keys.isna().any(axis="columns")).any():
        raise ValueError(f"every score needs a method, dataset, bag size and seed, however: {_first(keys, nameless)}")
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


def _block_means(runs: DataFrame) -> DataFrame:
    blocks = {block: [fmean(values) for values in found.to_numpy().T] for block, found in runs.groupby(level=BLOCK)}
    index = MultiIndex.from_tuples(blocks, names=BLOCK)
    return DataFrame(list(blocks.values()), index=index, columns=runs.columns)


def _mean_ranks(blocks: DataFrame) -> Series:
    return blocks.rank(axis="columns", ascending=False).mean().rename("mean_rank")


def _bootstrap(runs: DataFrame, draws: int, seed: int) -> NDArray[np.float64]:
    """What orders the methods in draws of the paired, nested bootstrap: [draws, methods].

    Each is the sum of the method's means in the drawn blocks, in units of the range of all values. To divide it by the
    number of blocks, which is the same for all methods, would change neither their order nor a sign.
    """
    generator = np.random.default_rng(seed)
    number = len(runs.index.unique("dataset"))
    copies = generator.multinomial(number, np.full(number, 1 / number), size=draws)  # [draws, datasets]
    smallest, largest = runs.min(axis=None), runs.max(axis=None)
    scaled = (runs - smallest) / ((largest - smallest) or 1.0)
    total = np.zeros((draws, len(runs.columns)))
    for dataset, (_, sizes) in enumerate(scaled.groupby(level="dataset")):
        for _, block in sizes.groupby(level="bag_size"):
            seeds = len(block)
            # each copy of a dataset has a draw of seeds of its own; how often all copies together draw each is
            # multinomial again
            counts = generator.multinomial(copies[:, dataset] * seeds, np.full(seeds, 1 / seeds))
            total += counts @ block.to_numpy() / seeds
    # the last digits depend on the order of additions, and must not break ties
    return np.round(total, 12)


def _groups(sample: NDArray[np.float64], tail: float) -> list[str]:
    """A letter for each method: [draws, methods], the best method first."""
    leader, group = 0, 0
    letters = []
    for method in range(sample.shape[1]):
        ahead = sample[:, leader] - sample[:, method]
        if np.quantile(ahead, tail, method="inverted_cdf") > 0:
            leader, group = method, group + 1
        letters.append(_letters(group))
    return letters


def _letters(index: int) -> str:
    """0: A, 25: Z, 26: AA, 27: AB, as in a spreadsheet."""
    first, last = divmod(index, 26)
    return (_letters(first - 1) if first else "") + chr(ord("A") + last)


def _matrix(values: NDArray[np.float64], methods: Sequence[str]) -> DataFrame:
    return DataFrame(values, index=list(methods), columns=list(methods))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, however: level={level}")

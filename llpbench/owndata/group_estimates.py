"""Estimates of groups in bags: expected counts and shares, intervals, and bounds that hold without a model.

Each line of the result is one group and one class, in one bag or in all bags.

- Estimates are sums of probabilities of rows. These add up to the counts of bags (`bag_effects.added_up`).
- Intervals are quantiles of the draws of `group_intervals.py`.
- Bounds are those of Duncan and Davis (1953). If a bag of n rows has N rows of a class, then a group of m rows has at
  least max(0, N - (n - m)) and at most min(m, N) of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray, Rows
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.core.seeding import generator
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels
from llpbench.owndata.group_intervals import ClassCounts, GroupedRows, drawn_counts
from llpbench.owndata.logit_draws import LogitDraws

ALL = "all"
"""Name in the column of bags for all bags together."""
NUMBERS = (
    *("rows", "count", "count_lower", "count_upper", "count_min", "count_max"),
    *("share", "share_lower", "share_upper", "share_min", "share_max"),
)
"""Numeric columns of the estimates."""
_MOST_GROUPS = 2_000
_TAIL = 0.025
"""Share of draws below the interval, and share above it."""
_WIDE, _OPEN = 0.8, 0.2
"""An interval is uninformative if it covers more than _WIDE of its bounds, and these more than _OPEN of the group."""


class UncertainGroups(LLPBenchWarning):
    """Intervals of some groups are nearly as wide as their bounds."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row."""

    of_row: IntArray
    """[rows]"""
    labels: pd.DataFrame
    """[groups, columns] labels of each group"""


def read_groups(by: Any, features: Any) -> Groups:
    """Return the groups that `by` names: a column of `features`, a list of columns, or a label for each row.

    Raises `LLPBenchError` for unknown columns, a wrong number of labels, and names that are columns of the estimates.
    """
    columns = _columns_of(by, features)
    columns.columns = [str(name) for name in columns.columns]
    if taken := [name for name in columns.columns if name in ("class", *NUMBERS)]:
        raise LLPBenchError(
            f"by must not contain {taken[0]!r}, because estimates have a column of that name. Rename the column."
        )
    names = list(columns.columns)
    of_row = columns.groupby(names, sort=True, dropna=False, observed=True).ngroup().to_numpy()
    first = np.unique(of_row, return_index=True)[1]
    if len(first) > _MOST_GROUPS:
        raise LLPBenchError(
            f"by must give at most {_MOST_GROUPS:,} groups, got {len(first):,}. Use fewer columns, or columns with "
            "fewer values, such as age groups."
        )
    return Groups(of_row.astype(np.int64), columns.iloc[first].reset_index(drop=True))


def _columns_of(by: Any, features: Any) -> pd.DataFrame:
    known = list(features.columns) if isinstance(features, pd.DataFrame) else []
    names = [by] if isinstance(by, str) else by if isinstance(by, list | tuple) else []
    if (
        names
        and all(isinstance(name, str) for name in names)
        and (len(names) != len(features) or set(names) <= {*known})
    ):
        if absent := [name for name in names if name not in known]:
            raise LLPBenchError(f"by must name columns of X, got {absent[0]!r}. Its columns are {_some(known)}.")
        if len({*names}) < len(names):
            raise LLPBenchError(f"by must name each column once, got {names!r}.")
        return features[[*names]].reset_index(drop=True)
    if isinstance(by, pd.DataFrame):
        found = by.reset_index(drop=True)
    elif np.ndim(by) == 1:
        name = by.name if isinstance(by, pd.Series) and by.name is not None else "group"
        values: Any = by.to_numpy() if isinstance(by, pd.Series) else by
        found = pd.DataFrame({name: values})
        if isinstance(by, pd.Series) and isinstance(by.dtype, pd.CategoricalDtype):
            found[name] = pd.Categorical(by)
    else:
        raise LLPBenchError(f"by must be a column, a list of columns or a label for each row, got {by!r}.")
    if len(found) != len(features):
        raise LLPBenchError(f"by must have a label for each of {len(features):,} rows, got {len(found):,}.")
    return found


def _some(names: Sequence[Hashable]) -> str:
    return ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")


def bounds(grouped: GroupedRows, counts: ClassCounts) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest possible number of rows of a class, by cell [cells]."""
    size = grouped.cell_sizes.astype(np.float64)
    if not counts.exact:
        return np.zeros_like(size), size
    number = counts.numbers[grouped.bag_of_cell]
    others = grouped.bag_sizes[grouped.bag_of_cell] - size
    known = np.isfinite(number)
    least = np.where(known, np.maximum(number - others, 0.0), 0.0)
    return least, np.where(known, np.minimum(number, size), size)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Estimates of one class in some cells, or in groups."""

    sizes: FloatArray
    count: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    most: FloatArray

    def of_others(self) -> _Estimates:
        """Return the estimates of the other class, if there are two."""
        ends = self.sizes - self.upper, self.sizes - self.lower, self.sizes - self.most, self.sizes - self.least
        return _Estimates(self.sizes, self.sizes - self.count, *ends)

    def columns(self) -> dict[str, Any]:
        """Return the columns of `NUMBERS` by name."""
        counts = (self.count, self.lower, self.upper, self.least, self.most)
        shares = (each / self.sizes for each in counts)
        return {NUMBERS[0]: self.sizes.astype(np.int64), **dict(zip(NUMBERS[1:], (*counts, *shares), strict=True))}


def _estimates(sizes: Any, count: FloatArray, drawn: FloatArray, least: FloatArray, most: FloatArray) -> _Estimates:
    count = np.clip(count, least, most)
    lower = np.quantile(drawn, _TAIL, axis=1, method="lower").clip(least, most)
    upper = np.quantile(drawn, 1 - _TAIL, axis=1, method="higher").clip(least, most)
    ends = np.minimum(lower, count), np.maximum(upper, count)
    return _Estimates(np.asarray(sizes, dtype=np.float64), count, *ends, least, most)


def group_estimates(
    groups: Groups,
    bags: BagLabels,
    bag_names: Sequence[str],
    classes: Sequence[Hashable],
    rows: Rows,
    proba: FloatArray,
    counts: Sequence[ClassCounts],
    draws: LogitDraws,
    *,
    tau: float,
    seed: int,
) -> pd.DataFrame:
    """Return a line for each group and class in all bags (`ALL`), then for each bag, group and class.

    Parameters
    ----------
    groups, bags : group and bag of each row; every row has a bag
    bag_names : columns that name a bag
    classes : names of classes, in the order of the columns of `proba`
    rows : features, passed to `draws`
    proba : [rows, classes] probabilities that add up to the counts of bags
    counts : counts by bag, for each class
    draws : posterior draws of logits
    tau : standard deviation of the effects of bags on logits
    seed : random seed of the draws
    """
    taken = [name for name in bag_names if name in groups.labels.columns or name in ("class", *NUMBERS)]
    if taken:
        raise LLPBenchError(
            f"columns of bags, groups and estimates must differ in name, got {taken[0]!r} twice. Rename the column."
        )
    grouped = GroupedRows(bags.of_row, groups.of_row, len(bags.names), len(groups.labels))
    overall, inside = [], []
    for label in range(1, 2) if len(classes) == 2 else range(len(classes)):
        rng = generator(seed, "group estimates", label)
        drawn = drawn_counts(grouped, rows, proba[:, label], counts[label], label, draws, tau, rng)
        least, most = bounds(grouped, counts[label])
        count = grouped.by_cell(proba[:, label]).clip(least, most)
        inside.append(_estimates(grouped.cell_sizes, count, drawn, least, most))
        sums = [grouped.by_group(each) for each in (count, drawn, least, most)]
        overall.append(_estimates(grouped.by_group(grouped.cell_sizes), *sums))
    if len(classes) == 2:
        overall, inside = ([each[0].of_others(), each[0]] for each in (overall, inside))
    _warn_of_wide(groups, overall)
    keys = [name if isinstance(name, tuple) else (name,) for name in bags.names]
    of_bag = pd.DataFrame(
        {name: pd.Series([key[place] for key in keys], dtype=object) for place, name in enumerate(bag_names)}
    )
    top = pd.DataFrame({name: [ALL] * grouped.groups for name in bag_names}, dtype=object)
    whole = _lines(top, groups.labels, classes, overall)
    cells = _lines(of_bag.iloc[grouped.bag_of_cell], groups.labels.iloc[grouped.group_of_cell], classes, inside)
    return pd.concat([whole, cells], ignore_index=True)


def of_people(found: pd.DataFrame, ratio: float) -> pd.DataFrame:
    """Convert estimates of repeated rows to estimates of people. `ratio` is the number of repeated rows per person."""
    numbers = {name: found[name] / ratio for name in NUMBERS if not name.startswith("share")}
    return found.assign(**{**numbers, "rows": numbers["rows"].round().astype(np.int64)})


def _lines(
    of_bag: pd.DataFrame, of_group: pd.DataFrame, classes: Sequence[Hashable], found: Sequence[_Estimates]
) -> pd.DataFrame:
    """Return a table with a line for each entry and class, ordered by entry."""
    names = pd.concat([of_bag.reset_index(drop=True), of_group.reset_index(drop=True)], axis=1)
    parts = [names.assign(**{"class": label}, **each.columns()) for label, each in zip(classes, found, strict=True)]
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def _warn_of_wide(groups: Groups, found: Sequence[_Estimates]) -> None:
    """Warn about groups whose intervals are nearly as wide as their bounds."""
    wide = np.zeros(len(groups.labels), dtype=bool)
    for each in found:
        room = each.most - each.least
        wide |= (room > _OPEN * each.sizes) & (each.upper - each.lower > _WIDE * room)
    if not wide.any():
        return
    some = [" ".join(map(str, names)) for names in groups.labels[wide].head(3).itertuples(index=False)]
    warnings.warn(
        f"intervals of {plural(int(wide.sum()), 'group')} ({', '.join(some)}{', ...' if wide.sum() > 3 else ''}) are "
        "nearly as wide as the bounds: the bags contain almost no information about these groups.",
        UncertainGroups,
        stacklevel=4,
    )

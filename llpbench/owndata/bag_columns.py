"""Columns that name bags or repeat their counts. They would explain the counts without any other feature."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np
import pandas as pd

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchWarning
from llpbench.data.frames import is_numeric
from llpbench.owndata.columns import leaving_out
from llpbench.owndata.times import looks_dated
from llpbench.tables.texts import without_decimals

_FEWEST_BAGS = 5
"""Number of bags from which agreement of a column with all bags is not a coincidence."""
_NEARLY_ALL = 0.95
"""Share of bags whose counts a column must repeat."""
_ROUNDED = 0.0051
"""Rounding error of shares with two digits."""
_SAME = 0.5
"""Largest difference of equal counts; proportions give counts that are not whole."""
_TOGETHER = 0.8
"""Smallest correlation over bags of the shares of a class and of a value with its name."""
_MOST_VALUES = 20
"""Largest number of different values of a column that may be the label."""


class BagColumn(LLPBenchWarning):
    """A feature names bags or repeats their counts."""


class LikelyLabel(LLPBenchWarning):
    """A feature may be the label of rows."""


def bag_column_warning(frame: pd.DataFrame, train: BaggedRows, keys: Collection[str]) -> str:
    """Return a message that names columns that identify bags or repeat their counts; "" if there are none.

    Such a text or date differs in nearly every bag. Such a number counts the bags, like the number of a day, or has one
    value in each bag, which is the count or share of a class. `keys` are columns that the user wants as features.
    """
    bags = len(train.sizes)
    if bags < _FEWEST_BAGS or len(frame) < 2 * bags:
        return ""
    first = train.bag_by_bag[np.cumsum(train.sizes) - train.sizes]
    names, repeats = [], []
    for place, name in enumerate(frame.columns):
        codes, values = pd.factorize(frame.iloc[:, place], use_na_sentinel=False)
        if name in keys or len(values) < 2 or not (codes == codes[first][train.bag_of_row]).all():
            continue
        column = frame.iloc[first, place]
        if len(values) >= _NEARLY_ALL * bags and (not is_numeric(column, "X") or _counts_bags(column)):
            names.append(name)
        elif not is_numeric(column, "X"):
            continue
        elif _repeats_counts(column.to_numpy(dtype=np.float64, na_value=np.nan), train):
            repeats.append(name)
    told = [f"different values in all bags: {', '.join(map(repr, names))}"] if names else []
    told += [f"counts or shares of the bags: {', '.join(map(repr, repeats))}"] if repeats else []
    if not told:
        return ""
    found = [str(name) for name in (*names, *repeats)]
    return (
        f"some features identify bags ({'; '.join(told)}). They explain the counts without any other feature. To leave "
        f"them out: {leaving_out(found)}."
    )


def label_column_warning(frame: pd.DataFrame, train: BaggedRows, classes: Sequence[Hashable]) -> str:
    """Return a message that names columns that may be the label of rows; "" if there are none.

    One value of such a column occurs in nearly every bag as often as a class. If its values are the classes, it is
    enough that both shares vary together, because rows may be a sample of their bags.
    """
    told, names = [], []
    for place, name in enumerate(map(str, frame.columns)):
        codes, values = pd.factorize(frame.iloc[:, place])
        if not 2 <= len(values) <= _MOST_VALUES:
            continue
        same_names = {*map(_written, values)} == {*map(_written, classes)}
        if (label := _class_of_column(codes, len(values), train, alike=same_names)) is not None:
            told.append(f"column {name!r} follows the counts of {classes[label]!r} in the bags")
            names.append(name)
    if not told:
        return ""
    return (
        f"{'; '.join(told)}. It may be the label of rows, which new rows do not have. To leave it out: "
        f"{leaving_out(names)}."
    )


def _written(value: Hashable) -> str:
    """Return a value as it is written: 1.0 as 1."""
    return without_decimals(str(value)).strip().lower()


def _class_of_column(codes: IntArray, values: int, train: BaggedRows, *, alike: bool) -> int | None:
    """Return the class whose counts are those of one of the values in nearly every bag; None if there is none.

    If names are `alike`, correlated shares are enough.
    """
    known = train.known & (train.sizes > 1)
    if known.sum() < _FEWEST_BAGS:
        return None
    sizes = train.sizes[known]
    for value in range(values):
        number = np.bincount(train.bag_of_row, codes == value, len(train.sizes))[known]
        for label, counts in enumerate(train.counts[known].T):
            same = np.abs(number - counts) <= _SAME
            if same.mean() >= _NEARLY_ALL and len(np.unique(number[same])) > 2:
                return label
            shares = number / sizes, counts / sizes
            if alike and min(map(np.ptp, shares)) > 0 and np.corrcoef(*shares)[0, 1] >= _TOGETHER:
                return label
    return None


def _counts_bags(column: pd.Series) -> bool:
    """Whether numbers of bags run without a gap, or are dates such as 20240331."""
    values = column.dropna().to_numpy(dtype=np.float64)
    if not len(values) or (values % 1).any():
        return False
    return np.ptp(values) + 1 == len(np.unique(values)) or all(looks_dated(value) for value in values)


def _repeats_counts(values: FloatArray, train: BaggedRows) -> bool:
    """Return whether numbers [bags] are the counts, shares or percentages of a class."""
    known: IntArray = np.flatnonzero(train.known)
    if len(known) < _FEWEST_BAGS:
        return False
    values, counts = values[known], train.counts[known]
    shares = counts / train.sizes[known, None]
    for column in range(counts.shape[1]):
        for truth, off in ((counts, 1e-6), (shares, _ROUNDED), (100 * shares, 100 * _ROUNDED)):
            same = np.abs(values - truth[:, column]) <= off
            if same.mean() >= _NEARLY_ALL and len(np.unique(values[same])) >= _FEWEST_BAGS:
                return True
    return False

"""Checks of counts against rows: rows that stand for several people, and the size of noise."""

from __future__ import annotations

import shlex
from collections.abc import Container, Hashable, Sequence

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, LLPBenchWarning, argument, either
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagLabels, BagTable
from llpbench.owndata.fitting import is_number

_NEARLY_ALL = 0.95
"""Share of bags whose counts a column of weights must add up to."""
_FEWEST_PEOPLE = 5
"""People in the median bag from which a matching sum of a column is not a coincidence."""
_SHARES = "shares in --proportions"
_MOST_NAMED = 3
"""Largest number of bags that a message names."""
_MOST_NOISE = 1e12
"""Largest scale of noise, in rows."""


def require_no_shares(table: BagTable) -> None:
    """Raise `LLPBenchError` for counts of a single class that are not whole: they are shares or percentages."""
    if not table.is_counts or table.values.shape[1] > 1:
        return
    known = table.values[np.isfinite(table.values)]
    broken = known[np.abs(known - np.rint(known)) > 1e-6]
    if len(broken):
        raise LLPBenchError(
            f"counts must be whole numbers, got {broken[0]:g}. Give {either('shares as proportions=', _SHARES)}, "
            f"fractional counts for both classes, or {argument('noise=')} if noise was added."
        )


class MissingCounts(LLPBenchWarning):
    """Some bags lack counts, so nothing is learned from their rows."""


def missing_counts_warning(
    table: BagTable, labels: BagLabels, named: Sequence[Hashable], besides: Container[Hashable], *, of_rows: bool
) -> str:
    """Return a message that names bags without all counts, and their missing classes; "" if there are none.

    `named`: classes in the order of the columns. `besides`: bags whose counts are ranges. `of_rows`: whether counts
    are exact numbers of the rows; a single missing count is then the rest of the rows.
    """
    sizes = dict(zip(labels.names, labels.sizes, strict=True))
    told = []
    for name, values in zip(table.names, table.values, strict=True):
        missing = np.isnan(values)
        if name not in sizes or name in besides or not missing.any():
            continue
        of = "all classes" if missing.all() else ", ".join(repr(named[int(place)]) for place in np.flatnonzero(missing))
        rest = sizes[name] - np.nansum(values)
        known = of_rows and missing.sum() == 1 and len(values) > 1 and rest >= 0
        remark = f"; with {sizes[name]:g} rows and the other counts, it would be {rest:g}" if known else ""
        told.append(f"{name!r} ({table.what[:-1]} of {of}{remark})")
    if not told:
        return ""
    more = f", and {len(told) - _MOST_NAMED:,} more" if len(told) > _MOST_NAMED else ""
    return (
        f"{plural(len(told), 'bag')} {verb(len(told))} missing {table.what} and {verb(len(told), 'is', 'are')} not "
        f"used for training: {', '.join(told[:_MOST_NAMED])}{more}. Fill in missing {table.what} to use these rows."
    )


def repeat_hint(frame: pd.DataFrame, labels: BagLabels, table: BagTable, sampled: bool) -> str:
    """Return advice if a column of X adds up to the counts of the bags, because it may hold weights of rows.

    Returns "" if there is no such column, or if the numbers of rows are the counts. Raises `LLPBenchError` if the rows
    are declared to be a sample.
    """
    if not table.is_counts or (table.values.shape[1] < 2 and table.sizes is None):
        return ""
    place = {name: number for number, name in enumerate(table.names)}
    at = np.array([place.get(name, -1) for name in labels.names], dtype=np.int64)
    totals = table.values.sum(axis=1) if table.values.shape[1] > 1 else table.sizes
    assert totals is not None
    total = np.where(at >= 0, totals[at], np.nan)
    known = np.isfinite(total)
    if not known.any() or (total == labels.sizes)[known].all() or np.median(total[known]) < _FEWEST_PEOPLE:
        return ""
    inside = labels.of_row >= 0
    for column in map(frame.columns.get_loc, frame.select_dtypes("number").columns):
        values = (
            frame.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan)[inside]
            if isinstance(column, int)
            else None
        )
        if values is None or not np.isfinite(values).all() or (values < 0).any():
            continue
        sums = np.bincount(labels.of_row[inside], values, len(labels.names))
        if (np.abs(sums - total) < 0.5)[known].mean() >= _NEARLY_ALL:
            name = frame.columns[column]
            option = shlex.quote(str(name))
            use = either(f"sample_weight=X[{name!r}]", f"--weight-column {option}")
            told = (
                f"Column {name!r} adds up to the counts, so rows stand for several people. Use it as weights ({use})."
            )
            if sampled:
                raise LLPBenchError(f"{told} Leave {argument('sampled=True')} out.")
            return told
    return ""


class OneRowPerBag(LLPBenchWarning):
    """Rows are bags, not people."""


def one_row_per_bag(frame: pd.DataFrame, labels: BagLabels, table: BagTable) -> str:
    """Return a message if every bag has one row, but its counts are of many people; else ""."""
    if (
        not table.is_counts
        or labels.weights is not None
        or len(labels.names) < len(frame)
        or len(frame) < _FEWEST_PEOPLE
    ):
        return ""
    if np.nanmedian(np.nansum(table.values, axis=1)) < _FEWEST_PEOPLE:
        return ""
    return (
        f"every bag has one row, but counts of many people, such as bag {table.names[0]!r}. Rows must be people, or "
        "groups of people with weights. To estimate a table of groups by outcomes from such a file, use "
        f"{either('cross_table', 'llpbench estimate-table')}."
    )


class LargeNoise(LLPBenchWarning):
    """Noise is larger than every bag."""


def large_noise_warning(deviation: float, sizes: FloatArray | IntArray) -> str:
    """Return a message if the standard deviation of noise is at least the largest of the sizes [bags]; else ""."""
    if deviation < sizes.max():
        return ""
    return (
        f"noise has a standard deviation of {deviation:,.6g}, but the largest bag has {sizes.max():,.6g} rows, so "
        f"counts say very little about a bag. Check that {argument('noise=')} is a scale of counts, not of shares or "
        "of a budget."
    )


def noise_deviation(noise: float, kind: str) -> float:
    """Return the standard deviation of noise. Raises `LLPBenchError` for an invalid scale or kind."""
    if not (is_number(noise) and 0 <= noise <= _MOST_NOISE):
        raise LLPBenchError(f"{argument('noise')} must be a scale from 0 to {_MOST_NOISE:g}, got {noise!r}.")
    if kind not in ("gaussian", "laplace"):
        raise LLPBenchError(f"{argument('noise_kind')} must be 'gaussian' or 'laplace', got {kind!r}")
    return float(noise) if kind == "gaussian" else float(noise) * 2**0.5

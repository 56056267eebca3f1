"""Several groupings of the same rows, such as by district and by age group, each with its own counts.

Each grouping gets a copy of all rows: in a copy, a row is in its bag of that grouping. Methods then see bags as usual.
The likelihood is the product of the likelihoods of all groupings (a composite likelihood). It treats counts of two
groupings as independent given the features, although both have the same rows. This does not bias estimates, but
standard errors are a little too small.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels, BagTable
from llpbench.data.reading_bags import read_bag_labels, read_bag_table

_SAME_TOTAL = 0.5
"""Largest difference of equal totals."""


class DisagreeingGroupings(LLPBenchWarning):
    """Counts of the same rows have different totals in two groupings."""


def are_groupings(bags: Any) -> bool:
    """Return whether `bags` are several groupings: a list of arrays, series, lists or frames."""
    own = (pd.Series, pd.DataFrame, np.ndarray, list)
    return isinstance(bags, list | tuple) and len(bags) > 0 and all(isinstance(each, own) for each in bags)


def read_groupings(
    X: Any, bags: Any, *, proportions: Any, counts: Any, weights: FloatArray | None
) -> tuple[BagLabels, BagTable]:
    """Return the bags of the copies of all rows, one grouping after the other, and one table of all bags.

    Raises `LLPBenchError` for another number of tables than of groupings, for bags of two groupings with the same
    label, and for tables of different classes.
    """
    given, what = (counts, "counts") if proportions is None else (proportions, "proportions")
    if not isinstance(given, list | tuple) or len(given) != len(bags) or len(bags) < 2:
        raise LLPBenchError(f"{what} must be a list with one table for each of {len(bags)} groupings (at least 2).")
    labels, tables = [], list[BagTable]()
    for grouping, table in zip(bags, given, strict=True):
        known = read_bag_labels(grouping, X)
        labels.append(_label_of_row(known.names, known.of_row))
        tables.append(read_bag_table(None if proportions is None else table, None if counts is None else table, known))
    _require_disjoint(tables)
    if counts is not None and (told := _disagreement(tables, labels)):
        warnings.warn(told, DisagreeingGroupings, stacklevel=4)
    copied = copies_of_rows(X, len(bags))
    of_rows = pd.Series(np.concatenate(labels), dtype=object)
    weights = None if weights is None else np.tile(weights, len(bags))
    return read_bag_labels(of_rows, copied, weights), _joined(tables, what)


def copies_of_rows(X: Any, number: int) -> Any:
    """Return a `number` of copies of a frame or array, one below the other."""
    if isinstance(X, pd.DataFrame):
        return pd.concat([X] * number, ignore_index=True)
    return np.concatenate([np.asarray(X)] * number)


def _disagreement(tables: list[BagTable], labels: list[Any]) -> str:
    """Return a message if counts of the same rows have different totals in two groupings; "" otherwise."""
    first = tables[0]
    totals = []
    for table, bags in zip(tables, labels, strict=True):
        if any(bag is None for bag in bags) or np.isnan(table.values).any() or {*bags} != {*table.names}:
            return ""  # not all rows are counted
        totals.append(dict(zip(table.columns or range(len(table.values[0])), table.values.sum(axis=0), strict=True)))
    for other in totals[1:]:
        for label, number in totals[0].items():
            if label in other and abs(other[label] - number) > _SAME_TOTAL:
                return (
                    f"the groupings disagree: their counts of {label!r} add up to {number:,.10g} and "
                    f"{other[label]:,.10g}, of the same {plural(len(labels[0]), 'row')}. The model is a compromise. "
                    f"Check both tables{'' if first.columns else ' and the order of bags'}."
                )
    return ""


def _label_of_row(names: list[Hashable], of_row: Any) -> Any:
    """[rows] labels, None where a row has no bag"""
    found = np.empty(len(names) + 1, dtype=object)
    found[: len(names)] = pd.Series(names, dtype=object).to_numpy()
    found[-1] = None
    return found[of_row]


def _require_disjoint(tables: list[BagTable]) -> None:
    seen = set[Hashable]()
    for table in tables:
        both = [name for name in table.names if name in seen]
        if both:
            raise LLPBenchError(
                f"bags of two groupings must not have the same name, got {both[0]!r} twice. Rename one."
            )
        seen.update(table.names)


def _joined(tables: list[BagTable], what: str) -> BagTable:
    """Return one table of the bags of all groupings."""
    first = tables[0]
    for table in tables[1:]:
        same = table.values.shape[1] == first.values.shape[1]
        if not same or (table.columns is None) != (first.columns is None):
            raise LLPBenchError(f"{what} of all groupings must have the same classes. Give the same columns in all.")
        if {*(table.columns or ())} != {*(first.columns or ())}:
            raise LLPBenchError(
                f"{what} of all groupings must have the same classes, got {first.columns} and {table.columns}."
            )
    values = np.concatenate([table.in_order_of(first) for table in tables])
    return replace(first, names=[name for table in tables for name in table.names], values=values)

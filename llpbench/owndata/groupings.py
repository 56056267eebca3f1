"""Several groupings of the same rows, such as by district and by age group, each with its own counts.

Each grouping gets a copy of all rows: in a copy, a row is in its bag of that grouping. Methods then see bags as usual.
The likelihood is the product of the likelihoods of all groupings (a composite likelihood). It treats counts of two
groupings as independent given the features, although both have the same rows. This does not bias estimates, but
standard errors are a little too small.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagTable, read_bag_labels, read_bag_table
from llpbench.owndata.fitting import is_network
from llpbench.owndata.training_set import key_columns

_SAME_TOTAL = 0.5
"""Largest difference of equal totals."""


class DisagreeingGroupings(LLPBenchWarning):
    """Counts of the same rows have different totals in two groupings."""


@dataclass(frozen=True, eq=False)
class StackedRows:
    """Copies of rows, one for each grouping, as arguments of `read_training_set`."""

    X: Any
    bags: Any
    """[rows of all copies] labels; None for rows without a bag"""
    counts: Any
    proportions: Any
    sample_weight: Any
    keys: list[str]
    """columns of X that name bags of a grouping, and were left out"""
    number: int
    """of groupings"""


def are_groupings(bags: Any) -> bool:
    """Return whether `bags` are several groupings: a list of arrays, series, lists or frames."""
    own = (pd.Series, pd.DataFrame, np.ndarray, list)
    return isinstance(bags, list | tuple) and len(bags) > 0 and all(isinstance(each, own) for each in bags)


def stacked(
    X: Any,
    bags: Any,
    *,
    method: str,
    proportions: Any,
    counts: Any,
    sample_weight: Any,
    keep_key: bool,
    others: Mapping[str, bool],
) -> StackedRows:
    """Return copies of rows for several groupings.

    `others`: arguments of `fit` that need a single grouping, and whether they were given. Raises `LLPBenchError` for
    these, for networks, for another number of tables than of groupings, for bags of two groupings with the same label,
    and for tables of different classes.
    """
    if is_network(method):
        raise LLPBenchError(f"several groupings need a direct method, got {method!r}. Use method='bag-gp'.")
    if other := next((name for name, there in others.items() if there), None):
        raise LLPBenchError(f"several groupings and {other} cannot be combined. Leave one of them out.")
    given, what = (counts, "counts") if proportions is None else (proportions, "proportions")
    if not isinstance(given, list | tuple) or len(given) != len(bags) or len(bags) < 2:
        raise LLPBenchError(f"{what} must be a list with one table for each of {len(bags)} groupings (at least 2).")
    labels, tables, keys = [], list[BagTable](), list[str]()
    for grouping, table in zip(bags, given, strict=True):
        known = read_bag_labels(grouping, X)
        labels.append(_label_of_row(known.names, known.of_row))
        tables.append(read_bag_table(None if proportions is None else table, None if counts is None else table, known))
        keys += key_columns(X, grouping) if isinstance(X, pd.DataFrame) and not keep_key else []
    _require_disjoint(tables)
    if counts is not None and (told := _disagreement(tables, labels)):
        warnings.warn(told, DisagreeingGroupings, stacklevel=3)
    joined = _joined(tables, what)
    features: Any
    if isinstance(X, pd.DataFrame):
        features = pd.concat([X.drop(columns=[*dict.fromkeys(keys)])] * len(bags), ignore_index=True)
    else:
        features = np.concatenate([np.asarray(X)] * len(bags))
    weights = sample_weight
    if isinstance(sample_weight, pd.Series):
        weights = pd.concat([sample_weight] * len(bags), ignore_index=True)
    elif sample_weight is not None:
        weights = np.tile(np.asarray(sample_weight), len(bags))
    return StackedRows(
        X=features,
        bags=pd.Series(np.concatenate(labels), dtype=object),
        counts=None if counts is None else joined,
        proportions=None if proportions is None else joined,
        sample_weight=weights,
        keys=[*dict.fromkeys(keys)],
        number=len(bags),
    )


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


def _joined(tables: list[BagTable], what: str) -> Any:
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
    values = [table.in_order_of(first) for table in tables]
    names = [name for table in tables for name in table.names]
    if first.columns is None:
        return dict(zip(names, np.concatenate(values).tolist(), strict=True))
    index = pd.Index(pd.Series(names, dtype=object), tupleize_cols=False)
    return pd.DataFrame(np.concatenate(values), index=index, columns=pd.Index(first.columns))

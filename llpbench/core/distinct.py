"""Rows that are the same in all columns: what depends on columns alone is computed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from llpbench.core.bags import FloatArray, IntArray, Rows

_FEWEST_ROWS = 100_000
"""rows below which a pass over all of them takes no time"""
_SHARE = 0.05
"""largest share of distinct rows: with more, little is saved"""


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct rows of a table."""

    first: IntArray
    """[distinct rows] a row for each"""
    place: IntArray
    """[rows] the distinct row that each row is"""

    @cached_property
    def counts(self) -> FloatArray:
        """[distinct rows] number of rows"""
        return np.bincount(self.place, minlength=len(self.first)).astype(np.float64)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` [rows, columns] over the rows of each distinct row."""
        return np.stack([np.bincount(self.place, column, len(self.first)) for column in values.T], axis=1)


def distinct(columns: Iterable[Any]) -> Distinct | None:
    """Return the distinct rows of columns [rows]; None if rows are few, or if too many of them are distinct."""
    code: IntArray | None = None
    for column in columns:
        if len(column) < _FEWEST_ROWS:
            return None
        values, codes = np.unique(column, return_inverse=True)
        if code is not None:
            values, codes = np.unique(code * np.int64(len(values)) + codes, return_inverse=True)
        if len(values) > _SHARE * len(column):
            return None
        code = np.asarray(codes, dtype=np.int64)
    if code is None:
        return None
    return Distinct(np.asarray(np.unique(code, return_index=True)[1], dtype=np.int64), code)


def distinct_rows(rows: Rows) -> Distinct | None:
    """Return the distinct rows of `rows`, as `distinct`."""
    return distinct([*rows.numeric.T, *rows.categorical.T, *rows.missing.T])  # numbers most often have many values

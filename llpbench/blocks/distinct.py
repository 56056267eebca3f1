"""Rows that are equal in all columns. Results that depend only on columns are computed once for all equal rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from llpbench.core.bags import FloatArray, IntArray, Rows

_FEWEST_ROWS = 10_000
"""number of rows below which a pass over all rows is fast anyway"""
_SHARE = 0.05
"""largest fraction of distinct rows; with more, little is saved"""


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct rows of a table."""

    first: IntArray
    """[distinct rows] first row that equals each distinct row"""
    place: IntArray
    """[rows] index of the distinct row that each row equals"""

    @cached_property
    def counts(self) -> FloatArray:
        """Number of rows that equal each distinct row [distinct rows]."""
        return np.bincount(self.place, minlength=len(self.first)).astype(np.float64)

    @classmethod
    def of(cls, columns: Iterable[Any], fewest: int | None = None) -> Distinct | None:
        """Return the distinct rows of columns [rows]; None for less than `fewest` rows or too many distinct ones."""
        code: IntArray | None = None
        for column in columns:
            if len(column) < (_FEWEST_ROWS if fewest is None else fewest):
                return None
            values, codes = np.unique(column, return_inverse=True)
            if code is not None:
                values, codes = np.unique(code * np.int64(len(values)) + codes, return_inverse=True)
            if len(values) > _SHARE * len(column):
                return None
            code = np.asarray(codes, dtype=np.int64)
        if code is None:
            return None
        return cls(np.asarray(np.unique(code, return_index=True)[1], dtype=np.int64), code)

    @classmethod
    def of_rows(cls, rows: Rows) -> Distinct | None:
        """Return the distinct rows of `rows`, as `of` does."""
        # numbers come first, since they usually have many values
        return cls.of([*rows.numeric.T, *rows.categorical.T, *rows.missing.T])

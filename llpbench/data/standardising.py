"""Features of a table as one matrix, for baggings based on distances."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.tables import Table

_FREQUENT = 0.01
"""smallest fraction of rows with which a category gets a column; rare ones would outnumber all other features"""
ROUNDING = 1e-12
"""relative rounding error of a mean; numbers with a smaller standard deviation count as equal"""


def standardised(table: Table, rows: IntArray) -> FloatArray:
    """Return standardised features `[rows, columns]` float64: numbers, then frequent categories as 0 or 1.

    Columns have mean 0 and standard deviation 1. Missing numbers have the mean; missing categories have no column.
    Constant columns are 0.
    """
    numeric = table.numeric[rows]
    known = ~np.isnan(numeric)
    mean = np.where(known, numeric, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    parts = [np.where(known, numeric, mean)]
    for column, names in enumerate(table.categories):
        codes = table.categorical[rows, column]
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        parts.append((codes[:, None] == np.flatnonzero(counts >= _FREQUENT * len(rows))).astype(np.float64))
    features = np.column_stack(parts)
    mean = features.mean(axis=0)
    features = features - mean
    std = features.std(axis=0)
    constant = std <= ROUNDING * np.abs(mean)
    return np.where(constant, 0.0, features / np.where(constant, 1.0, std))

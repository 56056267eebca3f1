"""Features of a table as one matrix, for baggings that go by distances."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.tables import Table

FREQUENT = 0.01
"""share of rows that a category must have for a column of its own: rarer ones would outnumber all other features"""
ROUNDING = 1e-12
"""of a mean, relative: a standard deviation below is that of equal numbers"""


def standardised(table: Table, rows: IntArray) -> FloatArray:
    """`[rows, columns]` float64 of mean 0 and standard deviation 1: numbers, then each frequent category as 0 or 1.

    Missing numbers are at the mean; missing categories are in none. What is constant is 0.
    """
    numeric = table.numeric[rows]
    known = ~np.isnan(numeric)
    mean = np.where(known, numeric, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    parts = [np.where(known, numeric, mean)]
    for column, names in enumerate(table.categories):
        codes = table.categorical[rows, column]
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        parts.append((codes[:, None] == np.flatnonzero(counts >= FREQUENT * len(rows))).astype(np.float64))
    features = np.column_stack(parts)
    mean = features.mean(axis=0)
    features = features - mean
    std = features.std(axis=0)
    constant = std <= ROUNDING * np.abs(mean)
    return np.where(constant, 0.0, features / np.where(constant, 1.0, std))

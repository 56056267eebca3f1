"""Conversion of rows for scikit-learn's histogram gradient boosting: missing numbers as NaN, categories as codes."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, Rows

MOST_CATEGORIES = 254
"""most categories of a column in histogram boosting; rarer ones count as missing"""


class BoostingRows:
    """Rows as an array [rows, numeric + categorical features]; `categorical` marks columns of codes."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows; their most frequent categories are used."""
        # scikit-learn cannot bin a column that has only missing values: such a column becomes constant
        self.absent: BoolArray = rows.missing.all(axis=0)
        self.tables = [_frequent(codes) for codes in rows.categorical.T]
        self.categorical: BoolArray = np.arange(rows.numeric.shape[1] + len(self.tables)) >= rows.numeric.shape[1]

    def __call__(self, rows: Rows) -> FloatArray:
        numeric = np.where(rows.missing, np.nan, rows.numeric.astype(np.float64))
        numeric[:, self.absent] = 0.0
        columns = [table[codes] for table, codes in zip(self.tables, _columns(rows, self.tables), strict=True)]
        return np.column_stack([numeric, *columns])


def _columns(rows: Rows, tables: list[FloatArray]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the codes of each column; codes beyond the table, unseen in training, become 0 (missing)."""
    return [np.where(codes < len(table), codes, 0) for codes, table in zip(rows.categorical.T, tables, strict=True)]


def _frequent(codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Return the new code of each old code; NaN for code 0 and for all but the most frequent categories."""
    counts = np.bincount(codes)
    counts[0] = 0
    order = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    chosen = order[counts[order] > 0]
    table = np.full(len(counts), np.nan)
    table[chosen] = np.arange(len(chosen))
    return table

"""Rows as points with a Euclidean distance that treats numbers and categories alike."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from llpbench.blocks.scores import ScoredRows
from llpbench.core.bags import FloatArray, Rows, Schema

_APART = np.sqrt(0.5)
"""value of an indicator, which puts two categories at distance 1"""


class Points:
    """Normal scores of numbers, with indicators of categories and missing values; two categories are at distance 1."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        """`rows` are the training rows."""
        self.scores, self.numbers, self.cardinalities = ScoredRows(rows), schema.numeric, schema.cardinalities
        self.gaps = np.flatnonzero(rows.missing.any(axis=0))

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.numbers + len(self.gaps) + sum(self.cardinalities)

    def __call__(self, rows: Rows) -> sparse.csr_array:
        """Return the points [rows, coordinates]."""
        numbers = np.hstack([self.scores(rows), _APART * rows.missing[:, self.gaps]])
        parts = [sparse.csr_array(numbers)]
        for codes, cardinality in zip(rows.categorical.T, self.cardinalities, strict=True):
            values, starts = np.full(len(codes), _APART), np.arange(len(codes) + 1, dtype=np.int32)
            # scikit-learn accepts no 64-bit indices
            parts.append(sparse.csr_array((values, codes.astype(np.int32), starts), shape=(len(codes), cardinality)))
        return sparse.csr_array(sparse.hstack(parts))


def dense_if_narrow(points: sparse.csr_array, most: int = 200) -> sparse.csr_array | FloatArray:
    """Return points as a dense array if that needs little memory."""
    return np.asarray(points.toarray()) if points.shape[1] <= most else points

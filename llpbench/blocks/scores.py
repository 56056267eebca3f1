"""Normal scores of rows (`core.numbers.NormalScores`), for methods whose rows are z-scores.

Normal scores depend only on the order of values, so z-scores and raw numbers have the same normal scores.
"""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.numbers import NormalScores


class ScoredRows:
    """Normal scores of every numeric column, with 0 for missing numbers."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self.scores = NormalScores(_numbers(rows))

    def __call__(self, rows: Rows) -> FloatArray:
        """Return scores [rows, numeric columns]."""
        return np.nan_to_num(self.scores(_numbers(rows)), nan=0.0)


def _numbers(rows: Rows) -> FloatArray:
    return np.where(rows.missing, np.nan, rows.numeric.astype(float))

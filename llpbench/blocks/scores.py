"""Normal scores of rows (`core.numbers.NormalScores`), for methods whose rows hold z-scores.

Normal scores depend on the order of values alone, so those of z-scores are those of the raw numbers.
"""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.numbers import NormalScores


class ScoredRows:
    """Normal scores of every numeric column, 0 where a number is missing."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self.scores = NormalScores(_numbers(rows))

    def __call__(self, rows: Rows) -> FloatArray:
        """Return scores [rows, numeric columns]."""
        return np.nan_to_num(self.scores(_numbers(rows)), nan=0.0)


def _numbers(rows: Rows) -> FloatArray:
    return np.where(rows.missing, np.nan, rows.numeric.astype(float))

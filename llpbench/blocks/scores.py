"""Normal scores: numbers by their rank, so that heavy tails leave no two rows alike.

A value gets the normal quantile of its mid-rank among the training values: u(x) = (#{s < x} + #{s <= x}) / 2N, clipped
to [1/2N, 1 - 1/2N], then Phi^-1(u), centred and divided by its standard deviation in training. Ties share a rank, so
that no noise is needed before (as published quantile transforms add); any increasing transform of a column gives the
same scores.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from llpbench.core.bags import BoolArray, FloatArray, Rows


class NormalScores:
    """Normal scores of every numeric column, 0 where a number is missing."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self.columns = [_ScoredColumn(x, gone) for x, gone in zip(rows.numeric.T, rows.missing.T, strict=True)]

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, numeric columns]"""
        scores = np.zeros(rows.numeric.shape)
        for i, column in enumerate(self.columns):
            scores[:, i] = np.where(rows.missing[:, i], 0.0, column(rows.numeric[:, i]))
        return scores


class _ScoredColumn:
    """The scores of one column: a step function of its distinct training values."""

    def __init__(self, values: FloatArray, missing: BoolArray) -> None:
        self.values, counts = np.unique(values[~missing], return_counts=True)
        total = max(int(counts.sum()), 1)
        below = np.concatenate([[0], np.cumsum(counts)])
        self.between = normal_quantile(below / total, total)
        """[values + 1] of a number below, between and above the training values"""
        self.at = normal_quantile((below[:-1] + below[1:]) / (2 * total), total)
        """[values] of each training value"""
        mean = float(counts @ self.at / total)
        deviation = float(np.sqrt(counts @ (self.at - mean) ** 2 / total))
        scale = 1 / deviation if len(counts) > 1 else 0.0
        self.between, self.at = (self.between - mean) * scale, (self.at - mean) * scale

    def __call__(self, values: FloatArray) -> FloatArray:
        if not len(self.values):
            return np.zeros(len(values))
        place = np.searchsorted(self.values, values)
        at = np.minimum(place, len(self.values) - 1)
        return np.where(self.values[at] == values, self.at[at], self.between[place])


def normal_quantile(share: FloatArray, total: int) -> FloatArray:
    """Normal quantiles of shares of `total` rows, clipped half a row from 0 and from 1."""
    return np.asarray(ndtri(np.clip(share, 0.5 / total, 1 - 0.5 / total)))

"""Normal scores and robust scores: alternatives to z-scores as the inputs of networks and direct methods.

The paper uses z-scores (`tasks.Scaler`). In a column with a heavy tail, the z-scores of nearly all rows differ by only
a few hundredths. Normal scores replace a value by the normal quantile of its rank among the training rows. Robust
scores divide by the interquartile range and clip smoothly (Holzmüller, Grinsztajn & Steinwart 2024). Both are monotone,
are fitted to the training rows only, and map missing values to NaN.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from llpbench.core.bags import FloatArray

MOST_KNOTS = 1000
"""Largest number of values of a column stored for its normal scores. Ranks between them are interpolated."""


class NormalScores:
    """Normal scores: the normal quantile of a value's mid-rank, scaled to mean 0 and variance 1 in training.

    With N training values of a column, the rank is `u(x) = (#{s < x} + #{s <= x}) / 2N`, clipped to [1/2N, 1 - 1/2N].
    For a column with more than `MOST_KNOTS` distinct values, ranks are interpolated between this many values.
    """

    def __init__(self, numeric: FloatArray) -> None:
        """`numeric`: [training rows, columns], NaN where missing."""
        self._columns = [_Ranks(column[~np.isnan(column)]) for column in numeric.T]

    def __call__(self, numeric: FloatArray) -> FloatArray:
        """Map values [rows, columns] to inputs of methods; NaN stays NaN."""
        scores = [ranks(column) for ranks, column in zip(self._columns, numeric.T, strict=True)]
        return np.column_stack(scores) if scores else numeric

    def inverse(self, column: int, values: FloatArray) -> FloatArray:
        """Map inputs of methods back to the units of a column."""
        return self._columns[column].inverse(values)


class _Ranks:
    """Normal scores of one column."""

    def __init__(self, values: FloatArray) -> None:
        knots, counts = np.unique(values, return_counts=True)
        total = max(len(values), 1)
        self.lowest = 0.5 / total
        upto = np.cumsum(counts) / total
        middle = upto - 0.5 * counts / total
        self.exact = len(knots) <= MOST_KNOTS
        if not self.exact:
            kept = np.unique(np.linspace(0, len(knots) - 1, MOST_KNOTS).round().astype(int))
            knots, middle, upto = knots[kept], middle[kept], upto[kept]
        self.knots, self.middle, self.upto = knots, middle, upto
        self.mean, self.std = 0.0, 1.0
        if len(knots) > 1:
            scores = self(values)
            self.mean, self.std = float(scores.mean()), float(scores.std())

    def __call__(self, values: FloatArray) -> FloatArray:
        if len(self.knots) < 2:  # a constant column has no information, even for new values
            return np.where(np.isnan(values), np.nan, 0.0)
        if self.exact:
            place = np.searchsorted(self.knots, values)
            known = self.knots[np.minimum(place, len(self.knots) - 1)] == values
            below = np.where(place > 0, self.upto[place - 1], 0.0)
            rank = np.where(known, self.middle[np.minimum(place, len(self.knots) - 1)], below)
        else:
            rank = np.interp(values, self.knots, self.middle)
        scores = (ndtri(rank.clip(self.lowest, 1.0 - self.lowest)) - self.mean) / self.std
        return np.where(np.isnan(values), np.nan, scores)

    def inverse(self, scores: FloatArray) -> FloatArray:
        if len(self.knots) < 2:
            return np.full_like(scores, self.knots[0] if len(self.knots) else 0.0)
        return np.asarray(np.interp(ndtr(scores * self.std + self.mean), self.middle, self.knots))


class _RobustScores:
    """Robust scores: the difference from the median in interquartile ranges, smoothly clipped to [-3, 3]."""

    def __init__(self, numeric: FloatArray) -> None:
        """`numeric`: [training rows, columns], NaN where missing."""
        filled = np.where(np.isnan(numeric).all(axis=0), 0.0, numeric)
        low, self.median, high = np.nanquantile(filled, [0.25, 0.5, 0.75], axis=0)
        spread = high - low
        half = 0.5 * (np.nanmax(filled, axis=0) - np.nanmin(filled, axis=0))
        self.scale = np.where(spread > 0, spread, half)
        self.constant = self.scale == 0
        self.scale = np.where(self.constant, 1.0, self.scale)

    def __call__(self, numeric: FloatArray) -> FloatArray:
        x = (numeric - self.median) / self.scale
        x = x / np.sqrt(1.0 + (x / _CLIP) ** 2)
        return np.where(self.constant & ~np.isnan(x), 0.0, x)

    def inverse(self, column: int, values: FloatArray) -> FloatArray:
        inside = values.clip(-_LARGEST, _LARGEST)
        distance = inside / np.sqrt(1.0 - (inside / _CLIP) ** 2)
        return np.asarray(distance * self.scale[column] + self.median[column])


_CLIP = 3.0
_LARGEST = _CLIP * (1 - 1e-6)

Transform = NormalScores | _RobustScores
TRANSFORMS: dict[str, type[Transform]] = {"scores": NormalScores, "robust": _RobustScores}
"""transforms by name (`core.cell.NUMBERS`); z-scores need none"""

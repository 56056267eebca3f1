"""Binning of rows: quantile bins for numbers, frequency bins for categories, with missing values in their own bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, IntArray, Rows


@dataclass(frozen=True, eq=False)
class FeatureBins:
    """The bins of one feature."""

    table: FloatArray | IntArray
    """inner edges of a numeric feature, ascending; bin of each code of a categorical one"""
    weights: FloatArray
    """[bins] fraction of the training rows in each bin"""
    positions: FloatArray | None
    """[bins] quantile in the middle of each bin of a numeric feature; NaN for the last bin, of missing values. None for
    a categorical feature, whose bins have no order"""

    @property
    def size(self) -> int:
        """number of bins"""
        return len(self.weights)

    @property
    def coordinates(self) -> FloatArray:
        """Bins as numbers [bins, columns]: quantiles in [-1, 1], or half the one-hot bin."""
        if self.positions is None:
            return 0.5 * np.eye(self.size)
        return np.asarray(2 * np.where(np.isnan(self.positions), 0.5, self.positions) - 1)[:, None]


class RowBins:
    """The bins of all features, numeric ones first."""

    def __init__(self, rows: Rows, bins: int, categories: int) -> None:
        """`rows` are the training rows. `bins` is the largest number of quantile bins of a numeric feature.

        `categories` is the largest number of categories with a bin of their own. Both must be below 255.
        """
        numeric = (_numeric_bins(x, gone, bins) for x, gone in zip(rows.numeric.T, rows.missing.T, strict=True))
        categorical = (_category_bins(codes, categories) for codes in rows.categorical.T)
        self.features: list[FeatureBins] = [*numeric, *categorical]

    def __call__(self, rows: Rows) -> IntArray:
        """Return the bin of each feature of each row, [features, rows] uint8."""
        numbers = rows.numeric.shape[1]
        found = np.empty((len(self.features), len(rows.numeric)), dtype=np.uint8)
        for i, feature in enumerate(self.features):
            if feature.positions is not None:
                place = np.searchsorted(feature.table, rows.numeric[:, i], side="right")
                found[i] = np.where(rows.missing[:, i], feature.size - 1, place)
            else:
                codes = rows.categorical[:, i - numbers]
                found[i] = feature.table[np.where(codes < len(feature.table), codes, 0)]
        return found  # type: ignore[return-value]


def _numeric_bins(values: FloatArray, missing: BoolArray, bins: int) -> FeatureBins:
    present = values[~missing]
    edges = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)[1:-1])) if len(present) else np.zeros(0)
    edges = edges.astype(values.dtype)
    counts = np.bincount(np.searchsorted(edges, present, side="right"), minlength=len(edges) + 1)
    share = counts / max(len(present), 1)
    positions = np.append(np.cumsum(share) - share / 2, np.nan)
    return FeatureBins(edges, np.append(counts, missing.sum()) / max(len(values), 1), positions)


def _category_bins(codes: IntArray, categories: int) -> FeatureBins:
    """Return one bin for each of the most frequent categories and for missing values, and a last bin for all others."""
    counts = np.bincount(codes)
    order = np.argsort(-counts, kind="stable")[:categories]
    kept = order[counts[order] > 0]
    table = np.full(len(counts), len(kept), dtype=np.int64)
    table[kept] = np.arange(len(kept))
    return FeatureBins(table, np.bincount(table[codes], minlength=len(kept) + 1) / max(len(codes), 1), None)

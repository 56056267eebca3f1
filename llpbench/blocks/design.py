"""Rows as direct methods take them: bins, normal scores, sparse matrices, points and columns for boosting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray, Rows, Schema
from llpbench.core.errors import warn
from llpbench.core.numbers import NormalScores
from llpbench.core.ranges import Choice


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


class _ScoredRows:
    """Normal scores of every numeric column, with 0 for missing numbers."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self.scores = NormalScores(_numbers(rows))

    def __call__(self, rows: Rows) -> FloatArray:
        """Return scores [rows, numeric columns]."""
        return np.nan_to_num(self.scores(_numbers(rows)), nan=0.0)


def _numbers(rows: Rows) -> FloatArray:
    return np.where(rows.missing, np.nan, rows.numeric.astype(float))


class OneHot:
    """Numbers, one-hot categories and missing-value indicators, each divided by its standard deviation in training.

    The matrix is sparse, because a column may have ten thousand categories, and therefore not centred. Every model here
    has an intercept instead.
    """

    def __init__(self, rows: Rows, schema: Schema) -> None:
        """`rows` are the training rows."""
        self.cardinalities = schema.cardinalities
        plain = self._matrix(rows)
        mean = np.asarray(plain.mean(axis=0)).ravel()
        variance = np.asarray(plain.multiply(plain).mean(axis=0)).ravel() - mean**2
        varies = variance > 1e-12
        self.scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)

    def __call__(self, rows: Rows) -> sparse.csr_array:
        """Return the matrix [rows, columns]."""
        return sparse.csr_array(self._matrix(rows).multiply(self.scale[None, :]))

    def _matrix(self, rows: Rows) -> sparse.csr_array:
        parts = [sparse.csr_array(rows.numeric.astype(np.float64)), sparse.csr_array(rows.missing.astype(np.float64))]
        for column, cardinality in enumerate(self.cardinalities):
            parts.append(_one_hot(rows.categorical[:, column], cardinality))
        return sparse.csr_array(sparse.hstack(parts))


def _one_hot(codes: IntArray, width: int, value: float = 1.0) -> sparse.csr_array:
    """Return a matrix [rows, width] with `value` in the column of each row's code; its indices are as wide as codes."""
    starts = np.arange(len(codes) + 1, dtype=codes.dtype)
    return sparse.csr_array((np.full(len(codes), value), codes, starts), shape=(len(codes), width))


FEATURES = Choice("plain", "scores", "scores+bins")
"""how linear methods represent numbers: unchanged, as normal scores, or as scores and quantile bins"""
_BINS = 10
"""quantile bins of a number"""


class LinearColumns:
    """Rows as a sparse matrix: numbers, missing-value indicators and one-hot categories of unit variance, then bins.

    Bins are columns of 0 and 1. Their variance is below 0.1, so they bend the effect of a score but do not replace it.
    Columns are not centred, because they would become dense. Models here have an intercept without penalty instead.
    """

    def __init__(self, features: str, rows: Rows, schema: Schema) -> None:
        """`features` is one of `FEATURES`; `rows` are the training rows."""
        self.scores = None if features == "plain" else _ScoredRows(rows)
        self.bins = RowBins(rows, _BINS, 1) if features == "scores+bins" else None
        self.one_hot = OneHot(self._scored(rows), schema)

    def __call__(self, rows: Rows) -> sparse.csr_array:
        """Return the matrix [rows, columns]."""
        plain = self.one_hot(self._scored(rows))
        if self.bins is None:
            return plain
        return sparse.csr_array(sparse.hstack([plain, *_binned(rows, self.bins)]))

    def _scored(self, rows: Rows) -> Rows:
        return rows if self.scores is None else rows._replace(numeric=self.scores(rows))


def _binned(rows: Rows, bins: RowBins) -> Iterator[sparse.csr_array]:
    """Yield the one-hot bins of each number, without the bin of missing values, which have an indicator."""
    for codes, feature in zip(bins(rows), bins.features, strict=True):
        if feature.positions is not None:
            yield _one_hot(codes.astype(np.int64), feature.size)[:, :-1]


_MOST_ROWS, _FEWEST_BAGS, _MOST_BAGS = 600_000, 300, 20_000
"""largest number of rows of a fit; smallest number of bags of a sample, which may therefore have more rows, and largest
number, since the work of a process grows with the bags"""


def some_bags(train: BaggedRows, rng: np.random.Generator) -> BaggedRows:
    """Return a random sample of whole bags: about 600,000 rows, in 300 to 20,000 bags. Warn if it has not all bags.

    Tables of up to 600,000 rows are returned whole.
    """
    rows, bags = len(train.bag_of_row), len(train.sizes)
    if rows <= _MOST_ROWS or bags <= _FEWEST_BAGS:
        return train
    order = rng.permutation(bags)
    fitting = int(np.searchsorted(np.cumsum(train.sizes[order]), _MOST_ROWS, side="right"))
    some = train.some(np.isin(np.arange(bags), order[: np.clip(fitting, _FEWEST_BAGS, _MOST_BAGS)]))
    share = f"{len(some.bag_of_row):,} of {rows:,} rows, in {len(some.sizes):,} of {bags:,} bags"
    warn("sample", f"fitted to {share}, at random")
    return some


def bag_average(train: BaggedRows) -> sparse.csr_array:
    """Return a matrix [bags, rows] whose product with a matrix of rows is the mean of each bag."""
    weights = 1.0 / train.sizes[train.bag_of_row]
    rows = np.arange(len(weights))
    return sparse.csr_array((weights, (train.bag_of_row, rows)), shape=(len(train.sizes), len(weights)))


def as_proba(scores: FloatArray, edge: float = 0.05) -> FloatArray:
    """Convert regression outputs [rows, classes] into probabilities of the same order.

    Clipping to [0, 1] would create ties. Instead, scores below `edge` or above 1 - `edge` approach 0 or 1
    exponentially.
    """
    near_zero = np.minimum(scores, edge)
    near_one = np.maximum(scores, 1 - edge)
    proba = np.where(
        scores < edge,
        edge * np.exp((near_zero - edge) / edge),
        np.where(scores > 1 - edge, 1 - edge * np.exp((1 - edge - near_one) / edge), scores),
    )
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


_APART = np.sqrt(0.5)
"""value of an indicator, which puts two categories at distance 1"""


class Points:
    """Normal scores of numbers, with indicators of categories and missing values; two categories are at distance 1."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        """`rows` are the training rows."""
        self.scores, self.numbers, self.cardinalities = _ScoredRows(rows), schema.numeric, schema.cardinalities
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
            parts.append(_one_hot(codes.astype(np.int32), cardinality, _APART))  # scikit-learn takes no 64-bit indices
        return sparse.csr_array(sparse.hstack(parts))


_MOST_CATEGORIES = 254
"""most categories of a column in histogram boosting; rarer ones count as missing"""


def proba_of(model: Any, columns: FloatArray, classes: int) -> FloatArray:
    """Return probabilities [rows, classes] of a scikit-learn classifier that may have seen only some classes."""
    proba, seen = np.zeros((len(columns), classes)), model.classes_
    proba[:, seen] = model.predict_proba(columns) if len(seen) > 1 else 1.0
    return proba


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
        coded = zip(rows.categorical.T, self.tables, strict=True)
        # codes beyond the table, unseen in training, become 0 (missing)
        return np.column_stack([numeric, *(table[np.where(codes < len(table), codes, 0)] for codes, table in coded)])


def _frequent(codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Return the new code of each old code; NaN for code 0 and for all but the most frequent categories."""
    counts = np.bincount(codes)
    counts[0] = 0
    order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
    chosen = order[counts[order] > 0]
    table = np.full(len(counts), np.nan)
    table[chosen] = np.arange(len(chosen))
    return table

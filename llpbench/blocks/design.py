"""Shared parts of the direct methods: matrices of rows, and regressions that predict probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray, Rows, Schema
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


class OneHot:
    """Numbers, one-hot categories and missing-value indicators, each divided by its standard deviation in training.

    The matrix is sparse, because a column may have ten thousand categories, and therefore not centred. Every model here
    has an intercept instead.
    """

    def __init__(self, rows: Rows, schema: Schema) -> None:
        """`rows` are the training rows."""
        self.cardinalities = schema.cardinalities
        self.scale = np.ones(1)
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
            codes = rows.categorical[:, column]
            ones, starts = np.ones(len(codes)), np.arange(len(codes) + 1)
            parts.append(sparse.csr_array((ones, codes, starts), shape=(len(codes), cardinality)))
        return sparse.csr_array(sparse.hstack(parts))


def bag_average(train: BaggedRows) -> sparse.csr_array:
    """Return a matrix [bags, rows] whose product with a matrix of rows is the mean of each bag."""
    weights = 1.0 / train.sizes[train.bag_of_row]
    rows = np.arange(len(weights))
    return sparse.csr_array((weights, (train.bag_of_row, rows)), shape=(len(train.sizes), len(weights)))


def soft_labels(train: BaggedRows) -> FloatArray:
    """Return each row's bag proportions, [rows, classes]."""
    return train.proportions[train.bag_of_row]


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


@dataclass(frozen=True, eq=False)
class RidgeShares:
    """Class proportions by ridge regression."""

    coefficients: FloatArray
    """[columns, classes]"""
    intercept: FloatArray
    """[classes]"""

    def __call__(self, features: sparse.csr_array) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return as_proba(np.asarray(features @ self.coefficients + self.intercept))


@dataclass(frozen=True, eq=False)
class LogisticShares:
    """Class proportions by logistic regression."""

    coefficients: FloatArray
    """[columns, outputs], one output for two classes"""
    intercept: FloatArray
    """[outputs]"""
    present: IntArray
    """classes with a proportion above 0"""
    classes: int

    def __call__(self, features: sparse.csr_array) -> FloatArray:
        """Return probabilities [rows, classes]."""
        from sklearn.utils.extmath import softmax

        scores = np.asarray(features @ self.coefficients + self.intercept)
        proba = np.zeros((features.shape[0], self.classes))
        if len(self.present) == 2:
            second = expit(scores[:, 0])
            proba[:, self.present] = np.stack([1 - second, second], axis=1)
        else:
            proba[:, self.present] = softmax(scores)
        return proba


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Probabilities of rows by a linear model of their columns."""

    design: OneHot
    shares: RidgeShares | LogisticShares

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return self.shares(self.design(rows))


def linear_fit(
    model: str, features: sparse.csr_array, targets: FloatArray, weights: FloatArray, strength: float
) -> RidgeShares | LogisticShares:
    """Fit ridge or logistic regression of class proportions; return a function from features to [rows, classes]."""
    from sklearn.linear_model import LogisticRegression, Ridge

    classes = targets.shape[1]
    if model == "ridge":
        ridge = Ridge(alpha=strength, solver="sparse_cg", tol=1e-8).fit(features, targets, sample_weight=weights)
        return RidgeShares(ridge.coef_.T, ridge.intercept_)
    # a soft label becomes one example of each class, weighted by its proportion
    labels = np.repeat(np.arange(classes), len(targets))
    repeated = sparse.csr_array(sparse.vstack([features] * classes))
    share = (targets * weights[:, None]).T.ravel()
    present = share > 0
    logistic = LogisticRegression(C=1 / strength, max_iter=1000)
    logistic.fit(repeated[present], labels[present], sample_weight=share[present])
    return LogisticShares(logistic.coef_.T, logistic.intercept_, logistic.classes_, classes)


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

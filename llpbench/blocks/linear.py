"""Shared parts of linear methods on bags: columns of rows, and probabilities from logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

from llpbench.blocks.binning import RowBins
from llpbench.blocks.design import OneHot, ScoredRows
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows, Schema
from llpbench.core.ranges import Choice

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
        self.scores = None if features == "plain" else ScoredRows(rows)
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
            ones, starts = np.ones(len(codes)), np.arange(len(codes) + 1)
            one_hot = sparse.csr_array((ones, codes.astype(np.int64), starts), shape=(len(codes), feature.size))
            yield one_hot[:, :-1]


@dataclass(frozen=True, eq=False)
class LogitWeights:
    """A linear model of logits. Two classes have one output, the logit of the second."""

    coefficients: FloatArray
    """[columns, outputs]"""
    intercept: FloatArray
    """[outputs]"""

    def __call__(self, columns: sparse.csr_array) -> FloatArray:
        """Return logits [rows, outputs]."""
        return np.asarray(columns @ self.coefficients + self.intercept)


def outputs(classes: int) -> int:
    """Return the number of logits for a number of classes."""
    return 1 if classes == 2 else classes


def probabilities(logits: FloatArray) -> FloatArray:
    """Return probabilities [rows, classes] from logits [rows, outputs]."""
    if logits.shape[1] == 1:
        return np.hstack([expit(-logits), expit(logits)])
    return np.asarray(softmax(logits, axis=1))


@dataclass(frozen=True, eq=False)
class LogitPredictor:
    """Probabilities of rows by a linear model of their logits."""

    columns: LinearColumns
    weights: LogitWeights

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return probabilities(self.weights(self.columns(rows)))


def bag_sums(train: BaggedRows, places: IntArray | None = None) -> sparse.csr_array:
    """Return a matrix [bags, rows] whose product with a matrix of rows is the sum of each bag.

    With `places` [rows], the product is with a matrix of distinct rows, and each row equals the one at its place.
    """
    rows = len(train.bag_of_row)
    places = np.arange(rows) if places is None else places
    shape = len(train.sizes), int(places.max()) + 1
    return sparse.csr_array((np.ones(rows), (train.bag_of_row, places)), shape=shape)


def minimise(
    objective: Callable[[LogitWeights], tuple[float, LogitWeights]], start: LogitWeights, iterations: int = 500
) -> tuple[float, LogitWeights]:
    """Minimise by L-BFGS; return the smallest value and its weights. `objective` returns a value and its gradient."""
    from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

    shape = start.coefficients.shape

    def unpack(flat: FloatArray) -> LogitWeights:
        split = len(flat) - shape[1]
        return LogitWeights(flat[:split].reshape(shape), flat[split:])

    def flattened(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(unpack(flat))
        return value, np.concatenate([gradient.coefficients.ravel(), gradient.intercept])

    first = np.concatenate([start.coefficients.ravel(), start.intercept])
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(flattened, first, jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), unpack(found.x)


def hinge(x: FloatArray, corner: float) -> tuple[FloatArray, FloatArray]:
    """Return max(0, x) and its derivative, with a parabola from 0 to `corner`; it is at most corner / 2 too small."""
    inside = np.clip(x, 0.0, corner)
    return inside**2 / (2 * corner) + np.maximum(x - corner, 0.0), inside / corner

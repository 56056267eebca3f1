"""prop-svm: a support vector machine, fitted in turn with labels that nearly match the counts of bags.

    min over w, y of ½ ‖w‖² + C Σᵢ hinge(yᵢ sᵢ) + C_p Σₖ mₖ | share of y in bag k − p̄ₖ |
    yᵢ: label, ±1;  sᵢ = w · xᵢ + b;  C: `cost`;  C_p: `proportions` · C

Alternating proportion-SVM: Yu, Liu, Kumar, Jebara & Chang 2013. A linear SVM is fitted to the labels. Then each bag
gets its best labels (exact, by sorting). With `start=random`, C rises from a ten-thousandth of its value by 50 % each
round. Fits from random labels end in very different local optima. Fits from the ranks of ridge regression on bag means
stay near these ranks.

Differences from the authors' code:

- The SVM is linear and fitted by L-BFGS, instead of kernels and an external solver. C_p = 10 C.
- The first labels match the counts by the ranks of `bag-mean-linear`. The authors take the best of ten random
  labellings (`start=random`).
- With more than two classes, each class is fitted against the rest.
- A logistic curve, fitted to the proportions of bags, converts scores to probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench import BaggedRows, DirectMethod, DirectParams, FloatArray, Rows, Schema, register_method
from llpbench.blocks.assigning import assigned
from llpbench.blocks.design import FEATURES, LinearColumns, bag_average
from llpbench.blocks.linear import LogitWeights, fit_bags, hinge, linear_fit, outputs
from llpbench.core.bags import BoolArray
from llpbench.core.ranges import Choice, LogUniform

_RANDOM_STARTS = 10


@dataclass(frozen=True)
class _PropSVMParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    cost: Annotated[float, LogUniform(1e-3, 10.0)] = 1.0
    """cost of a row inside the margin, C in the paper"""
    proportions: Annotated[float, LogUniform(0.1, 100.0)] = 10.0
    """cost of each row too many or too few of a class in a bag, relative to `cost`"""
    start: Annotated[str, Choice("ridge", "random")] = "ridge"
    """first labels: from the ranks of ridge regression on bag means, or the best of ten random labellings"""


@dataclass(frozen=True, eq=False)
class _CalibratedScores:
    """Probabilities from scores, by logistic curves fitted to the proportions of bags."""

    columns: LinearColumns
    scores: tuple[LogitWeights, ...]
    """one score for two classes, otherwise one for each class"""
    curves: tuple[LogitWeights, ...]
    """logit of a class as a function of its score"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        columns = self.columns(rows)
        pairs = zip(self.scores, self.curves, strict=True)
        each = [curve.proba(sparse.csr_array(score(columns))) for score, curve in pairs]
        if len(each) == 1:
            return each[0]
        shares = np.column_stack([proba[:, 1] for proba in each]) + 1e-12
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@register_method("prop-svm", version=1, reference="Yu et al. 2013", family="classical", extra=True)
class PropSVM(DirectMethod):
    """Linear support vector machine with labels that match the proportions of bags."""

    Params = _PropSVMParams
    params: _PropSVMParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _CalibratedScores:
        """Fit each class against the rest, or once with two classes."""
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        scores, curves, anneal = [], [], self.params.start == "random"
        for label in range(schema.classes)[-outputs(schema.classes) :]:
            share = train.proportions[:, label]
            against = BaggedRows(train.rows, train.index, np.stack([1 - share, share], axis=1) * train.sizes[:, None])
            fits = [
                _proportion_svm(columns, against, share, labels, self.params.cost, self.params.proportions, anneal)
                for labels in self._starts(columns, against, rng)
            ]
            scores.append(min(fits, key=lambda fit: fit[0])[1])
            curves.append(fit_bags(sparse.csr_array(scores[-1](columns)), against, "kl", 1e-3))
        return _CalibratedScores(design, tuple(scores), tuple(curves))

    def _starts(self, columns: sparse.csr_array, train: BaggedRows, rng: np.random.Generator) -> list[BoolArray]:
        """Return one or several sets of labels [rows] that match the counts."""
        if self.params.start == "random":
            noise = rng.normal(size=(_RANDOM_STARTS, columns.shape[0], 2))
            return [assigned(each, train) == 1 for each in noise]
        means = sparse.csr_array(bag_average(train) @ columns)
        ridge = linear_fit("ridge", means, train.proportions, train.sizes / train.sizes.mean(), 1.0)
        return [assigned(np.log(ridge.proba(columns)), train) == 1]


_CORNER = 0.05
"""width of the rounded corner of hinges"""
_FIRST, _FACTOR, _ROUNDS, _STILL = 1e-4, 1.5, 100, 0.01
"""first factor of C, its growth per round, largest number of rounds, and change of the objective at which they stop"""


def _best_labels(scores: FloatArray, train: BaggedRows, shares: FloatArray, weight: float) -> BoolArray:
    """Return the labels [rows] that minimise the hinges + `weight` sum_k m_k |share of y in bag k - shares_k|."""
    of_row, sizes = train.bag_of_row, train.sizes
    positive, negative = np.maximum(1 - scores, 0), np.maximum(1 + scores, 0)
    order = np.lexsort((positive - negative, of_row))
    starts = np.cumsum(sizes) - sizes
    gains = np.cumsum((negative - positive)[order])
    before = np.concatenate([[0.0], gains])[starts]
    place = np.arange(len(order)) - starts[of_row[order]] + 1
    target = (shares * sizes)[of_row[order]]
    cost = weight * np.abs(place - target) - (gains - before[of_row[order]])
    none = weight * shares * sizes
    least = np.minimum.reduceat(cost, starts)
    first = np.minimum.reduceat(np.where(cost <= least[of_row[order]], place, len(order)), starts)
    number = np.where(least < none, first, 0)
    labels = np.zeros(len(order), dtype=bool)
    labels[order] = place <= number[of_row[order]]
    return labels


def _proportion_cost(labels: BoolArray, train: BaggedRows, shares: FloatArray) -> float:
    """Return sum_k m_k |share of y in bag k - shares_k|."""
    return float(np.abs(np.bincount(train.bag_of_row, labels, len(shares)) - shares * train.sizes).sum())


def _support_vectors(
    columns: sparse.csr_array, labels: BoolArray, cost: float, start: LogitWeights
) -> tuple[float, LogitWeights]:
    """Minimise |w|^2 / 2 + cost sum_i hinge(y_i f_i); return value and weights. The intercept has no penalty."""
    signs, transposed = np.where(labels, 1.0, -1.0), sparse.csr_array(columns.T)

    def objective(weights: LogitWeights) -> tuple[float, LogitWeights]:
        loss, slope = hinge(1 - signs * weights(columns)[:, 0], _CORNER)
        by_score = -cost * signs * slope
        value = (weights.coefficients**2).sum() / 2 + cost * loss.sum()
        by_coefficient = weights.coefficients + (transposed @ by_score)[:, None]
        return float(value), LogitWeights(by_coefficient, np.array([by_score.sum()]))

    return start.minimise(objective)


def _proportion_svm(
    columns: sparse.csr_array,
    train: BaggedRows,
    shares: FloatArray,
    labels: BoolArray,
    cost: float,
    weight: float,
    anneal: bool,
) -> tuple[float, LogitWeights]:
    """Return objective and weights, starting from labels [rows]; C_p is `weight` times C.

    `anneal`: C starts at a ten-thousandth and grows by half in each round, so that bad first labels can change.
    """
    weights = LogitWeights(np.zeros((columns.shape[1], 1)), np.zeros(1))
    factor, before = _FIRST if anneal else 1.0, np.inf
    for _ in range(_ROUNDS):
        value, weights = _support_vectors(columns, labels, factor * cost, weights)
        value += factor * cost * weight * _proportion_cost(labels, train, shares)
        if factor == 1 and before - value < _STILL:
            break
        before = value if factor == 1 else np.inf
        factor = min(factor * _FACTOR, 1.0)
        labels = _best_labels(weights(columns)[:, 0], train, shares, weight)
    return value, weights

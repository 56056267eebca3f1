"""Support vectors with unknown labels: alternating proportion-SVM (Yu et al. 2013), linear, two classes.

Over w, b and labels y it minimises |w|^2 / 2 + C sum_i hinge(y_i f_i) + C_p sum_k m_k |share of y in bag k - p_k|.
Given f, the best labels of a bag are exact: rows with the largest hinge(-f) - hinge(f) are positive, and their number
is the one that minimises the sum.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from llpbench.blocks.hinges import hinge
from llpbench.blocks.linear import LogitWeights, minimise
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray

_CORNER = 0.05
"""width of the rounded corner of hinges"""
_FIRST, _FACTOR, _ROUNDS, _STILL = 1e-4, 1.5, 100, 0.01
"""first factor of C, its growth per round, largest number of rounds, and change of the objective at which they stop"""


def best_labels(scores: FloatArray, train: BaggedRows, shares: FloatArray, weight: float) -> BoolArray:
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


def proportion_cost(labels: BoolArray, train: BaggedRows, shares: FloatArray) -> float:
    """Return sum_k m_k |share of y in bag k - shares_k|."""
    return float(np.abs(np.bincount(train.bag_of_row, labels, len(shares)) - shares * train.sizes).sum())


def support_vectors(
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

    return minimise(objective, start)


def proportion_svm(
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
        value, weights = support_vectors(columns, labels, factor * cost, weights)
        value += factor * cost * weight * proportion_cost(labels, train, shares)
        if factor == 1 and before - value < _STILL:
            break
        before = value if factor == 1 else np.inf
        factor = min(factor * _FACTOR, 1.0)
        labels = best_labels(weights(columns)[:, 0], train, shares, weight)
    return value, weights

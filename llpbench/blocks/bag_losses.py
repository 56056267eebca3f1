"""Losses of whole bags under a linear model: the likelihood of counts, and distances of proportions.

Let p be the probabilities of rows, n_k and m_k the counts and size of bag k, and r_k the mean of p minus n_k / m_k:

- `count`: -log P(n_k) of independent rows, approximated by a normal of mean sum p and variance sum p (1 - p) + 1/12
  plus the variance of noise in the counts. It is exact (Poisson-binomial) in bags of at most 12 rows with whole counts.
  For more than two classes, it is a sum over classes, each against the rest (a composite likelihood).
- `kl`: m_k KL(n_k / m_k || mean p); `square`: m_k |r_k|^2;
- `absolute`: m_k sum_c |r_kc|; `insensitive`: m_k sum_c max(0, |r_kc| - 1 / sqrt(mean size)). Corners are rounded
  within 0.01.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from llpbench.blocks.counts import poisson_binomial_posterior
from llpbench.blocks.distinct import distinct_rows
from llpbench.blocks.linear import LogitWeights, bag_sums, minimise, outputs, probabilities
from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.ranges import Choice

BAG_LOSSES = Choice("count", "kl", "square", "absolute", "insensitive")
_EXACT = 12
"""largest bag whose likelihood is exact"""
_CORNER = 0.01
_PATH = (100.0, 10.0, 1.0)
"""factors of the penalty; each fit starts from the previous one, since the objective is not convex"""
_FEWEST_ROWS = 10_000
"""number of rows from which equal rows are computed once"""


class BagLoss:
    """A loss of the predictions of rows, with its gradient. Equal rows can be predicted once."""

    def __init__(self, loss: str, train: BaggedRows, places: IntArray | None = None) -> None:
        """Make the loss of `train`, whose counts must all be known.

        Parameters
        ----------
        loss : one of `BAG_LOSSES`
        train : rows in bags
        places : [rows] prediction that each row has (default: its own)
        """
        self.loss, self.sums = loss, bag_sums(train, places)
        self.transposed, self.sizes = sparse.csr_array(self.sums.T), train.sizes.astype(np.float64)
        self.proportions = train.proportions
        self.counts = train.proportions * self.sizes[:, None]
        self.extra = 1 / 12 + train.noise**2
        whole = (train.counts == np.round(train.counts)).all(axis=1) & (train.noise == 0)
        self.small = np.flatnonzero((train.sizes <= _EXACT) & whole)
        rows = train.padded(self.small, int(train.sizes[self.small].max(initial=0)))
        self.rows = rows if places is None else np.where(rows >= 0, places[rows], -1)

    def __call__(self, proba: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss summed over bags, and its derivatives with respect to `proba` [predictions, classes]."""
        if self.loss == "count":
            return self._count(proba)
        mean = self.sums @ proba / self.sizes[:, None]
        if self.loss == "kl":
            mean = np.maximum(mean, 1e-300)
            share = self.proportions
            value = np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0) / mean), 0.0)
            slope = -share / mean
        elif self.loss == "square":
            value, slope = (mean - self.proportions) ** 2, 2 * (mean - self.proportions)
        else:
            residual = mean - self.proportions
            tolerance = 1 / np.sqrt(self.sizes.mean()) if self.loss == "insensitive" else 0.0
            beyond = np.maximum(np.abs(residual) - tolerance, 0.0)
            rounded = np.hypot(beyond, _CORNER)
            value, slope = rounded - _CORNER, np.sign(residual) * beyond / rounded
        return float(self.sizes @ value.sum(axis=1)), self.transposed @ slope

    def _count(self, proba: FloatArray) -> tuple[float, FloatArray]:
        classes = proba.shape[1]
        total, gradient = 0.0, np.zeros_like(proba)
        for label in (1,) if classes == 2 else range(classes):
            p = proba[:, label]
            variance = self.sums @ (p * (1 - p)) + self.extra
            lacking = self.counts[:, label] - self.sums @ p
            values = (lacking**2 / variance + np.log(2 * np.pi * variance)) / 2
            pull, spread = -lacking / variance, (1 - lacking**2 / variance) / (2 * variance)
            pull[self.small] = spread[self.small] = 0.0  # these bags are exact
            gradient[:, label] = self.transposed @ pull + self.transposed @ spread * (1 - 2 * p)
            if len(self.small):
                inside = self.rows >= 0
                padded = np.where(inside, p[self.rows], 0.0)
                counts = np.rint(self.counts[self.small, label]).astype(np.int64)
                values[self.small] = -np.log(np.maximum(count_probability(padded, counts), 1e-300))
                q = poisson_binomial_posterior(padded, counts, self.sizes[self.small].astype(np.int64))
                by_p = (padded - q) / np.maximum(padded * (1 - padded), 1e-12)
                np.add.at(gradient[:, label], self.rows[inside], by_p[inside])
            total += float(values.sum())
        return total, gradient


def count_probability(proba: FloatArray, counts: IntArray) -> FloatArray:
    """Return P(sum of y = n) [bags] for independent Bernoulli y with `proba` [bags, size], 0 in padding."""
    sums = np.zeros((len(proba), proba.shape[1] + 1))
    sums[:, 0] = 1.0
    for p in proba.T:
        sums[:, 1:] = sums[:, 1:] * (1 - p[:, None]) + sums[:, :-1] * p[:, None]
        sums[:, 0] *= 1 - p
    return np.asarray(sums[np.arange(len(proba)), counts])


def fit_bags(columns: sparse.csr_array, train: BaggedRows, loss: str, strength: float) -> LogitWeights:
    """Return a linear model of logits that minimises a loss of bags + strength/2 |coefficients|^2.

    `columns` [rows, columns] are those of the rows of `train`. All its counts must be known.
    """
    if (same := distinct_rows(train.rows, _FEWEST_ROWS)) is not None:
        columns = columns[same.first]
    bag_loss, transposed = BagLoss(loss, train, None if same is None else same.place), sparse.csr_array(columns.T)

    def objective(weights: LogitWeights, penalty: float) -> tuple[float, LogitWeights]:
        proba = probabilities(weights(columns))
        value, by_proba = bag_loss(proba)
        by_logit = proba * (by_proba - (proba * by_proba).sum(axis=1, keepdims=True))
        by_logit = by_logit[:, -1:] if proba.shape[1] == 2 else by_logit
        value += penalty / 2 * float((weights.coefficients**2).sum())
        return value, LogitWeights(transposed @ by_logit + penalty * weights.coefficients, by_logit.sum(axis=0))

    classes = train.counts.shape[1]
    prior = np.log(np.maximum(train.prior, 1e-9))
    weights = LogitWeights(
        np.zeros((columns.shape[1], outputs(classes))), prior[1:] - prior[:1] if classes == 2 else prior
    )
    for factor in _PATH:
        weights = minimise(partial(objective, penalty=strength * factor), weights)[1]
    return weights

"""Boosted trees fitted to the counts of bags, in two ways that share their posterior.

Let z be the logits of rows, and q the posterior of their classes given predictions and bag counts (`BagCounts`). The
gradient of the likelihood of the counts with respect to z is p - q. EM's surrogate of its second derivative is p (1 -
p). `boost_counts` grows one tree for each such step; `boost_posteriors` refits trees to q a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, softmax

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import Gradients, TreeInput, TreeRows, TreeSettings, full_logits
from llpbench.core.bags import FloatArray, IntArray, Rows

if TYPE_CHECKING:
    import xgboost


@dataclass(frozen=True, eq=False)
class TreeLogits:
    """Logits of rows by boosted trees."""

    input: TreeInput
    booster: xgboost.Booster
    offset: FloatArray
    """[outputs]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return logits [rows, classes]."""
        return full_logits(self.input.scores(self.booster, rows) + self.offset)


@dataclass(frozen=True, eq=False)
class TreeProba:
    """Probabilities of rows by boosted trees."""

    logits: TreeLogits

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.asarray(softmax(self.logits(rows), axis=1))


def boost_counts(
    data: TreeRows, counts: BagCounts, prior: FloatArray, settings: TreeSettings, rng: np.random.Generator
) -> TreeLogits:
    """Boost the likelihood of the counts, starting from the logit of the prior [classes]."""
    classes = len(prior)
    counts, cells = _in_cells(data, counts)
    prior = prior.clip(1e-6, 1 - 1e-6)
    offset = logit(prior[1:]) if classes == 2 else np.log(prior)

    def binary(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores[:, 0] + offset)
        q = counts.binary_posterior(p)
        return counts.weighted((p - q)[:, None]), counts.weighted((p * (1 - p))[:, None])

    def several(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = softmax(scores + offset, axis=1)
        return counts.weighted(p - counts.posterior(p)), counts.weighted(p * (1 - p))

    booster = data.grow(binary if classes == 2 else several, len(offset), settings, rng, cells.place)
    return TreeLogits(data.input, booster, offset)


def boost_posteriors(
    data: TreeRows, counts: BagCounts, start: FloatArray, settings: TreeSettings, rounds: int, rng: np.random.Generator
) -> TreeLogits:
    """Run EM with full refits from logits `start` [rows, classes] of the training rows.

    In each of `rounds`, trees are fitted by cross-entropy to q = softmax(z + b), with b the shift of each bag that
    makes its mean equal its proportions.
    """
    outputs = 1 if start.shape[1] == 2 else start.shape[1]
    counts, cells = _in_cells(data, counts)
    logits = start if cells.first is None else start[cells.first]
    for _ in range(rounds):
        gradients = _cross_entropy(counts.fitted(logits)[:, -outputs:], counts)
        booster = data.grow(gradients, outputs, settings, rng, cells.place)
        logits = full_logits(data.scores(booster))
        logits = logits if cells.place is None else logits[cells.place]
    return TreeLogits(data.input, booster, np.zeros(outputs))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows that are the same and in the same bag."""

    first: IntArray | None
    """[cells] a row of each; None: each row is a cell"""
    place: IntArray | None
    """[cells] the distinct row of each"""


def _in_cells(data: TreeRows, counts: BagCounts) -> tuple[BagCounts, _Cells]:
    if data.same is None:
        return counts, _Cells(None, None)
    counts, first = counts.folded(data.same)
    return counts, _Cells(first, data.same.place[first])


def _cross_entropy(targets: FloatArray, counts: BagCounts) -> Gradients:
    def gradients(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
        return counts.weighted(p - targets), counts.weighted(p * (1 - p))

    return gradients

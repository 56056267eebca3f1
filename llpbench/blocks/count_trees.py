"""Boosted trees fitted to the counts of bags, in two ways with the same posterior.

Let z be logits of rows, p their probabilities, and q the posterior given p and the counts of bags (`BagCounts`). The
gradient of the negative log likelihood with respect to z is p - q. EM replaces its second derivative by p (1 - p).
`boost_counts` grows one tree for each such step; `boost_posteriors` refits all trees to q a few times.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, softmax

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.side_by_side import later
from llpbench.blocks.trees import Gradients, TreeInput, TreeRows, TreeSettings, full_logits, tree_seed
from llpbench.core.bags import FloatArray, Rows

if TYPE_CHECKING:
    import xgboost


@dataclass(frozen=True, eq=False)
class TreeLogits:
    """Logits of rows by boosted trees."""

    input: TreeInput
    booster: xgboost.Booster | Future[xgboost.Booster]
    """the trees; a future while they are grown in another thread"""
    offset: FloatArray
    """[outputs]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return logits [rows, classes]."""
        return full_logits(self.input.scores(self.grown(), rows) + self.offset)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with grown trees."""
        return {**self.__dict__, "booster": self.grown()}

    def grown(self) -> xgboost.Booster:
        """Return the trees, once they are grown."""
        return self.booster.result() if isinstance(self.booster, Future) else self.booster


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
    offset = start_of(prior)
    counts = data.cells(counts)[0]
    parts = data.parts(counts.bag_of_row, len(counts.sizes))
    gradients = [
        _likelihood_gradients(counts if len(parts) == 1 else counts.some(part.rows, part.bags), offset)
        for part in parts
    ]
    booster = data.grow(gradients, len(offset), settings, tree_seed(rng))
    return TreeLogits(data.input, booster.reset(), offset)


def start_of(prior: FloatArray) -> FloatArray:
    """Return the logits [outputs] of the prior [classes]."""
    prior = prior.clip(1e-6, 1 - 1e-6)
    return np.asarray(logit(prior[1:]) if len(prior) == 2 else np.log(prior))


def _likelihood_gradients(counts: BagCounts, offset: FloatArray) -> Gradients:
    """Return a function for the gradients of the negative log likelihood of some counts."""

    def binary(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores[:, 0] + offset)
        q = counts.binary_posterior(p)
        return (p - q)[:, None], (p * (1 - p))[:, None]

    def several(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = softmax(scores + offset, axis=1)
        return p - counts.posterior(p), p * (1 - p)

    return binary if len(offset) == 1 else several


def boost_posteriors(
    data: TreeRows, counts: BagCounts, start: FloatArray, settings: TreeSettings, rounds: int, rng: np.random.Generator
) -> TreeLogits:
    """Run EM, starting from logits `start` [rows, classes] of the training rows, and refit all trees in each round.

    In each of `rounds`, trees are fitted by cross-entropy to q = softmax(z + b). The shift b of each bag makes the mean
    of q equal the bag's proportions. Inside `background`, another thread does so.
    """
    outputs = 1 if start.shape[1] == 2 else start.shape[1]
    counts, rows = data.cells(counts)
    logits = start[rows]
    parts = data.parts(counts.bag_of_row, len(counts.sizes))
    seeds = [tree_seed(rng) for _ in range(rounds)]

    def refitted() -> xgboost.Booster:
        now = logits
        for seed in seeds:
            targets = counts.fitted(now)[:, -outputs:]
            booster = data.grow(
                [_cross_entropy_gradients(targets[part.rows]) for part in parts], outputs, settings, seed
            )
            now = full_logits(data.scores(booster))
        return booster.reset()

    return TreeLogits(data.input, later(refitted), np.zeros(outputs))


def _cross_entropy_gradients(targets: FloatArray) -> Gradients:
    """Return a function for the gradients of the cross-entropy to class probabilities `targets` [rows, outputs]."""

    def gradients(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
        return p - targets, p * (1 - p)

    return gradients

"""Shares of outcomes by group from the margins of precincts: an over-dispersed count likelihood.

With P_bg people of group g in precinct b and shares p_gk of outcome k in group g, the count of outcome k has

- mean sum_g P_bg p_gk
- variance sum_g P_bg p_gk (1 - p_gk) (1 + (P_bg - 1) rho) + 1/12

These are the first two moments of a beta-binomial with correlation rho, and of rounding. The log likelihood is normal,
with every outcome against the rest, times (K - 1) / K for K outcomes. Logits of a group are drawn towards those of all
people by a normal prior, more in large groups: their shares vary more with the composition of precincts than the
likelihood knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from llpbench.core.bags import FloatArray

_PRIOR, _PRIOR_POWER = 3.5, 0.25
"""Precision of a group's logits, and the power of its relative size that multiplies it; chosen on the New Zealand
elections of 2002 to 2011 (benchmarks/elections.py), as are the next three."""
_INFLATION = 1.4
"""Factor of the variance from the information matrix."""
_BETWEEN, _BETWEEN_POWER = 10.0, 0.5
"""Variance of logits between precincts, divided by their number, and the power of a group's relative size."""
_ROUNDING = 1 / 12
_START = -5.0
"""Start of the logit of rho."""
_STEPS = 500


@dataclass(frozen=True, eq=False)
class CrossShares:
    """Shares of outcomes by group."""

    shares: FloatArray
    """[groups, outcomes]"""
    rho: float
    """correlation of people of one group in one precinct"""
    covariance: FloatArray
    """[groups x outcomes, groups x outcomes] of logits, which matter up to a constant for each group"""

    def deviations(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Return draws of the deviations of logits [draws, groups, outcomes]; means over outcomes are 0."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(values.clip(min=0.0))
        drawn = (rng.standard_normal((draws, len(values))) @ root.T).reshape(draws, *self.shares.shape)
        return np.asarray(drawn - drawn.mean(axis=2, keepdims=True))


def fit_cross_shares(groups: FloatArray, outcomes: FloatArray, weights: FloatArray) -> CrossShares:
    """Fit shares to the people by group [precincts, groups] and by outcome [precincts, outcomes].

    `weights` [precincts] multiply likelihoods. Every group must have people.
    """
    return _Likelihood(groups, outcomes, weights).maximum()


class _Likelihood:
    def __init__(self, groups: FloatArray, outcomes: FloatArray, weights: FloatArray) -> None:
        self.groups, self.outcomes = groups, outcomes
        self.pairs = groups * np.maximum(groups - 1, 0)
        number = outcomes.shape[1]
        self.weights = weights[:, None] * (number - 1) / number
        total, people = weights @ outcomes, weights @ groups
        logits = np.log((total + 1) / (total.sum() + number))
        self.centre = logits - logits.mean()
        self.relative = people / people.sum() * len(people)
        self.precision = _PRIOR * self.relative[:, None] ** _PRIOR_POWER

    def maximum(self) -> CrossShares:
        shares = self.outcomes / np.maximum(self.outcomes.sum(axis=1, keepdims=True), 1)
        means = self.groups.T @ shares / self.groups.sum(axis=0)[:, None]
        start = np.append(np.log(means.clip(min=1e-4)).ravel(), _START)
        found = minimize(self._value, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "maxcor": 20})
        p, rho = self._shares(found.x)
        return CrossShares(p, rho, self._covariance(p, rho))

    def _shares(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        logits = parameters[:-1].reshape(self.groups.shape[1], self.outcomes.shape[1])
        return np.asarray(softmax(logits, axis=1)), float(expit(parameters[-1]))

    def _value(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log posterior and its gradient."""
        p, rho = self._shares(parameters)
        logits = parameters[:-1].reshape(p.shape)
        single = p * (1 - p)
        of_pairs = self.pairs @ single
        variance = self.groups @ single + rho * of_pairs + _ROUNDING
        away = self.outcomes - self.groups @ p
        off = logits - logits.mean(axis=1, keepdims=True) - self.centre
        value = 0.5 * (self.weights * (away**2 / variance + np.log(variance))).sum()
        value += 0.5 * (self.precision * off**2).sum()
        by_mean = -self.weights * away / variance
        by_variance = 0.5 * self.weights * (1 / variance - (away / variance) ** 2)
        spread = self.groups.T @ by_variance + rho * (self.pairs.T @ by_variance)
        by_share = self.groups.T @ by_mean + spread * (1 - 2 * p)
        by_logit = p * (by_share - (p * by_share).sum(axis=1, keepdims=True)) + self.precision * off
        return value, np.append(by_logit.ravel(), (by_variance * of_pairs).sum() * rho * (1 - rho))

    def _covariance(self, p: FloatArray, rho: float) -> FloatArray:
        """Return the covariance of logits: inverse information, inflated, and variation between precincts."""
        number, outcomes = p.shape
        single = p * (1 - p)
        spread = self.groups + rho * self.pairs
        variance = spread @ single + _ROUNDING
        information = np.zeros((number, outcomes, number, outcomes))
        for k in range(outcomes):
            slope = p[:, [k]] * (np.eye(outcomes)[k] - p)  # [groups, outcomes], of p_gk by logits
            steep = (1 - 2 * p[:, [k]]) * slope  # of its variance
            weight = self.weights[:, 0] / variance[:, k]
            means = (self.groups.T * weight) @ self.groups
            spreads = 0.5 * (spread.T * (weight / variance[:, k])) @ spread
            information += np.einsum("gh,gi,hj->gihj", means, slope, slope)
            information += np.einsum("gh,gi,hj->gihj", spreads, steep, steep)
        size = number * outcomes
        centring = np.eye(outcomes) - 1 / outcomes
        prior = np.kron(np.diag(self.precision[:, 0]), centring)
        inverse = np.linalg.pinv(information.reshape(size, size) + prior, hermitian=True)
        between = _BETWEEN / len(self.groups) * self.relative**_BETWEEN_POWER
        return np.asarray(_INFLATION * inverse + np.kron(np.diag(between), centring))

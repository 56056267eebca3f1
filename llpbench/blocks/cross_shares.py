"""Shares of outcomes by group from the margins of precincts: an over-dispersed count likelihood.

With P_bg people of group g in precinct b and shares p_bgk of outcome k in group g, the count of outcome k has

- mean sum_g P_bg p_bgk
- variance sum_g P_bg p_bgk (1 - p_bgk) (1 + (P_bg - 1) rho) + 1/12

These are the first two moments of a beta-binomial with correlation rho, and of rounding. The log likelihood is normal,
with every outcome against the rest, times (K - 1) / K for K outcomes. Logits of shares are those of the group plus
effects of the precinct's covariates, which all groups have in common. Logits of a group are drawn towards those of all
people by a normal prior, more in large groups: their shares vary more with the composition of precincts than the
likelihood knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from llpbench.core.bags import FloatArray

_PRIOR, _PRIOR_POWER = 3.5, 0.25
"""Precision of a group's logits, and the power of its relative size that multiplies it; chosen on the New Zealand
elections of 2002 to 2011 (benchmarks/elections.py), as are the next three."""
_INFLATION = 1.4
"""Factor of the variance from the information matrix."""
_BETWEEN, _BETWEEN_POWER = 10.0, 0.5
"""Variance of logits between precincts, divided by their number, and the power of a group's relative size."""
_LEAST_RELATIVE = 0.01
_SLOPES = 1.0
"""Precision of the effects of covariates of unit variance."""
_ROUNDING = 1 / 12
_START = -5.0
"""Start of the logit of rho."""
_STEPS = 500


@dataclass(frozen=True, eq=False)
class CrossShares:
    """Shares of outcomes by group."""

    shares: FloatArray
    """[precincts, groups, outcomes]; without covariates the same in all precincts"""
    rho: float
    """correlation of people of one group in one precinct"""
    covariance: FloatArray
    """[groups x outcomes, groups x outcomes] of logits, which matter up to a constant for each group"""

    def deviations(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Return draws of the deviations of logits [draws, groups, outcomes]; means over outcomes are 0."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(values.clip(min=0.0))) @ vectors.T  # does not depend on the signs of vectors
        drawn = (rng.standard_normal((draws, len(values))) @ root.T).reshape(draws, *self.shares.shape[1:])
        return np.asarray(drawn - drawn.mean(axis=2, keepdims=True))


class CrossLikelihood:
    """The likelihood of people by group [precincts, groups] and by outcome [precincts, outcomes].

    `weights` [precincts] multiply likelihoods. `covariates` [precincts, covariates] get mean 0 and unit variance.
    """

    def __init__(self, groups: FloatArray, outcomes: FloatArray, weights: FloatArray, covariates: FloatArray) -> None:
        self.groups, self.outcomes = groups, outcomes
        often = weights * groups.sum(axis=1)
        centred = covariates - (often @ covariates) / often.sum()
        spread = np.sqrt(often @ centred**2 / often.sum())
        self.covariates = centred / np.where(spread > 0, spread, 1.0)
        self.pairs = groups * np.maximum(groups - 1, 0)
        number = outcomes.shape[1]
        self.weights = weights[:, None] * (number - 1) / number
        total, people = weights @ outcomes, weights @ groups
        logits = np.log((total + 1) / (total.sum() + number))
        self.centre = logits - logits.mean()
        self.relative = (people / people.sum() * (people > 0).sum()).clip(min=_LEAST_RELATIVE)
        self.precision = _PRIOR * self.relative[:, None] ** _PRIOR_POWER

    def maximum(self) -> CrossShares:
        """Return the shares with the largest posterior density."""
        from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

        shares = self.outcomes / np.maximum(self.outcomes.sum(axis=1, keepdims=True), 1)
        people = self.weights * self.groups
        means = people.T @ shares / people.sum(axis=0)[:, None].clip(min=1e-12)
        slopes = np.zeros((self.covariates.shape[1], shares.shape[1]))
        start = np.concatenate([np.log(means.clip(min=1e-4)).ravel(), slopes.ravel(), [_START]])
        found = minimize(self.value, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "maxcor": 20})
        _, slopes, p, rho = self._shares(found.x)
        return CrossShares(p, rho, self._covariance(p, rho))

    def _shares(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return logits, slopes, shares [precincts, groups, outcomes] and rho."""
        groups, outcomes = self.groups.shape[1], self.outcomes.shape[1]
        logits, slopes = np.split(parameters[:-1].reshape(-1, outcomes), [groups])
        shares = (
            softmax(logits + (self.covariates @ slopes)[:, None], axis=2) if len(slopes) else softmax(logits, axis=1)
        )
        shape = (*self.groups.shape, outcomes)
        return logits, slopes, np.broadcast_to(shares, shape), float(expit(parameters[-1]))

    def value(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log posterior, and its gradient."""
        logits, slopes, p, rho = self._shares(parameters)
        of_pairs = _sums(self.pairs, p * (1 - p))
        variance = _sums(self.groups, p * (1 - p)) + rho * of_pairs + _ROUNDING
        away = self.outcomes - _sums(self.groups, p)
        off = logits - logits.mean(axis=1, keepdims=True) - self.centre
        value = 0.5 * (self.weights * (away**2 / variance + np.log(variance))).sum()
        value += 0.5 * ((self.precision * off**2).sum() + _SLOPES * (slopes**2).sum())
        by_variance = 0.5 * self.weights * (1 / variance - (away / variance) ** 2)
        by_share = self.groups[:, :, None] * (-self.weights * away / variance)[:, None]
        by_share += (self.groups + rho * self.pairs)[:, :, None] * by_variance[:, None] * (1 - 2 * p)
        by_logit = p * (by_share - (p * by_share).sum(axis=2, keepdims=True))
        by_slope = _SLOPES * slopes + self.covariates.T @ by_logit.sum(axis=1)
        by_rho = (by_variance * of_pairs).sum() * rho * (1 - rho)
        by_group = by_logit.sum(axis=0) + self.precision * off
        return float(value), np.concatenate([by_group.ravel(), by_slope.ravel(), [by_rho]])

    def _covariance(self, p: FloatArray, rho: float) -> FloatArray:
        """Return the covariance of logits: inverse information, inflated, and variation between precincts."""
        precincts, groups = self.groups.shape
        outcomes, slopes = self.outcomes.shape[1], self.covariates.shape[1]
        people, spread = self.groups[:, :, None], (self.groups + rho * self.pairs)[:, :, None]
        variance = _sums(self.groups + rho * self.pairs, p * (1 - p)) + _ROUNDING
        size = (groups + slopes) * outcomes
        information = np.zeros((size, size))
        for k in range(outcomes):
            slope = p[:, :, [k]] * (np.eye(outcomes)[k] - p)  # of p_bgk by logits
            for number, each, weight in (
                (people, slope, self.weights[:, 0] / variance[:, k]),
                (spread, (1 - 2 * p[:, :, [k]]) * slope, 0.5 * self.weights[:, 0] / variance[:, k] ** 2),
            ):
                by_logit = number * each  # [precincts, groups, outcomes], of the mean or variance of a count
                by_slope = self.covariates[:, :, None] * by_logit.sum(axis=1)[:, None]
                columns = np.concatenate([by_logit, by_slope], axis=1).reshape(precincts, size)
                information += (columns.T * weight) @ columns
        centring = np.eye(outcomes) - 1 / outcomes
        prior = np.kron(np.diag(np.append(self.precision[:, 0], np.full(slopes, _SLOPES))), centring)
        inverse = np.linalg.pinv(information + prior, hermitian=True)[: groups * outcomes, : groups * outcomes]
        used = int(((self.weights[:, 0] > 0) & (self.groups.sum(axis=1) > 0)).sum())
        between = _BETWEEN / used * self.relative**_BETWEEN_POWER
        return np.asarray(_INFLATION * inverse + np.kron(np.diag(between), centring))


def _sums(people: FloatArray, values: FloatArray) -> FloatArray:
    """Return sums over groups [precincts, outcomes] of `values` [precincts, groups, outcomes] times `people`."""
    return np.asarray((people[:, None] @ values)[:, 0])

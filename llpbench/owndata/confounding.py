"""Sensitivity of ecological inference to causes that act on precincts, by regressions over precincts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
import pandas as pd
from scipy import stats

from llpbench.core.bags import FloatArray, IntArray
from llpbench.owndata.bounds import interval


@dataclass(frozen=True, eq=False)
class Confounding:
    """What regressions of outcomes on groups say about the estimates of a table."""

    groups: FloatArray  # [precincts, groups] shares of groups
    outcomes: FloatArray  # [precincts, outcomes] shares of outcomes
    size: FloatArray  # [precincts] people, times the weight of the precinct
    weights: FloatArray  # [precincts] inverse variances of shares up to a factor
    covariates: FloatArray  # [precincts, covariates]

    @classmethod
    def of(
        cls, people: FloatArray, counts: FloatArray, weights: FloatArray, covariates: FloatArray, rho: float
    ) -> Self:
        """Return the regressions of people by group and outcome, with weights and covariates of precincts.

        `rho` is the correlation of people of one group in one precinct.
        """
        size = people.sum(axis=1)
        used = (size > 0) & (weights > 0)
        size, weights = size[used], weights[used]
        x, y = (each[used] / size[:, None] for each in (people, counts))
        return cls(x, y, weights * size, weights * size / (1 + (size - 1) * rho), covariates[used])

    @property
    def _there(self) -> IntArray:
        """Positions of the groups with people."""
        return np.flatnonzero(self.groups.sum(axis=0) > 0)

    @property
    def goodman(self) -> FloatArray:
        """Shares [groups, outcomes] by Goodman's regression, in which people count alike; NaN for an empty group."""
        shares = np.full((self.groups.shape[1], self.outcomes.shape[1]), np.nan)
        shares[self._there] = _Regression(self.groups[:, self._there], self.outcomes, self.size).slopes
        return shares

    def curvature(self) -> list[float]:
        """Return the probability of the test of Ramsey (1969) by outcome; NaN for too few precincts.

        Under the assumption of all ecological inference, an outcome's expected share is linear in the shares of groups.
        The test adds the square of the fitted share. It sees neither a hidden cause that acts on all groups alike, nor
        which groups change.
        """
        plain, found = self._regression(), []
        for fitted, values in zip((plain.design @ plain.slopes).T, self.outcomes.T, strict=True):
            more = _Regression(np.column_stack([plain.design, fitted**2]), values[:, None], self.weights)
            slope, error, degrees = more.contrast(np.eye(more.design.shape[1])[-1])
            found.append(2 * stats.t.sf(abs(slope[0] / error[0]), degrees) if error[0] > 0 else np.nan)
        return found

    def differences(
        self, groups: Sequence[str], outcomes: Sequence[str], shares: FloatArray, drawn: FloatArray
    ) -> pd.DataFrame:
        """Return a line for each pair of groups with people and each outcome.

        `shares` are [groups, outcomes], `drawn` their draws [draws, groups, outcomes].

        A line has the `difference` and its 95 % interval, and `robustness`, between 0 and 1: a hidden cause that
        explains less than this share of the variation between precincts, both of the outcome and of the first group's
        size (given the other groups and the covariates), cannot change the sign of the difference. It is the
        robustness value of Cinelli & Hazlett (2020) with the errors of Goodman's regression, as applied to ecological
        inference by McCartan & Kuriwaki (2025).

        With covariates, `shift` is the change of the difference in Goodman's regression when they are added, and
        `shift_p` the probability of a shift of this size if the assumption holds without them: the test of Hausman
        (1978), with the residual variance of the regression with covariates in both errors.
        """
        lines: list[tuple[object, ...]] = []
        for one, other in combinations(self._there, 2):
            contrast = (self._there == one) * 1.0 - (self._there == other)
            full, plain = self._regression(), self._regression(covariates=False)
            slope, error, degrees = full.contrast(contrast)
            shift = slope - plain.contrast(contrast)[0]
            difference = shares[one] - shares[other]
            lower, upper = interval(difference, drawn[:, one] - drawn[:, other], -1.0, 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                f = (difference / error) ** 2 / degrees
                robustness = np.where(error > 0, (np.sqrt(f**2 + 4 * f) - f) / 2, np.nan)
                added = max(1 - plain.variance(contrast) / full.variance(contrast), 1e-12)
                p = 2 * stats.t.sf(np.abs(shift) / (error * np.sqrt(added)), degrees)
            values = zip(outcomes, difference, lower, upper, robustness, shift, p, strict=True)
            lines += [(groups[one], groups[other], *line) for line in values]
        names = ("difference", "difference_lower", "difference_upper", "robustness", "shift", "shift_p")
        found = pd.DataFrame(lines, columns=["group", "other", "outcome", *names])
        return found if self.covariates.shape[1] else found.drop(columns=["shift", "shift_p"])

    def _regression(self, *, covariates: bool = True) -> _Regression:
        groups = self.groups[:, self._there]
        design = np.column_stack([groups, self.covariates]) if covariates else groups
        return _Regression(design, self.outcomes, self.weights)


@dataclass(frozen=True, eq=False)
class _Regression:
    """Weighted least squares of several outcomes."""

    design: FloatArray  # [precincts, regressors]
    values: FloatArray  # [precincts, outcomes]
    weights: FloatArray  # [precincts]

    @cached_property
    def slopes(self) -> FloatArray:
        """[regressors, outcomes]"""
        root = np.sqrt(self.weights)[:, None]
        return np.asarray(np.linalg.lstsq(root * self.design, root * self.values, rcond=None)[0])

    def contrast(self, contrast: FloatArray) -> tuple[FloatArray, FloatArray, int]:
        """Return a contrast of the first slopes [outcomes], its standard errors, and the degrees of freedom."""
        slope, degrees = contrast @ self.slopes[: len(contrast)], len(self.design) - self.design.shape[1]
        if degrees <= 0:
            return slope, np.full(self.values.shape[1], np.nan), 0
        left = self.weights @ (self.values - self.design @ self.slopes) ** 2
        return slope, np.asarray(np.sqrt(self.variance(contrast) * left / degrees)), degrees

    def variance(self, contrast: FloatArray) -> float:
        """Return the variance of a contrast of the first slopes, for values of variance 1 / weight."""
        inverse = np.linalg.pinv((self.design.T * self.weights) @ self.design)[: len(contrast), : len(contrast)]
        return float(contrast @ inverse @ contrast)

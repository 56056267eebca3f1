"""Sensitivity of ecological inference to causes that act on precincts, by regressions over precincts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from llpbench.core.bags import FloatArray
from llpbench.owndata.bounds import interval


@dataclass(frozen=True, eq=False)
class Confounding:
    """What regressions of outcomes on groups say about the estimates of a table."""

    groups: FloatArray
    """[precincts, groups] shares of the groups with people"""
    outcomes: FloatArray
    """[precincts, outcomes] shares of outcomes"""
    weights: FloatArray
    """[precincts]"""
    covariates: FloatArray
    """[precincts, covariates]"""

    def curvature(self) -> list[float]:
        """Return the probability of the test of Ramsey (1969) by outcome; NaN for too few precincts."""
        plain, found = self._regression(), []
        for fitted, values in zip((plain.design @ plain.slopes).T, self.outcomes.T, strict=True):
            more = _Regression(np.column_stack([plain.design, fitted**2]), values[:, None], self.weights)
            slope, error, degrees = more.contrast(np.eye(more.design.shape[1])[-1])
            found.append(2 * stats.t.sf(abs(slope[0] / error[0]), degrees) if error[0] > 0 else np.nan)
        return found

    def differences(
        self, groups: Sequence[str], outcomes: Sequence[str], shares: FloatArray, drawn: FloatArray
    ) -> pd.DataFrame:
        """Return a line for each pair of `groups` and each outcome, from `shares` [groups, outcomes] and their draws.

        Columns are those of `CrossTable.differences`.
        """
        lines: list[tuple[object, ...]] = []
        for one, other in combinations(range(len(groups)), 2):
            contrast = np.eye(len(groups))[one] - np.eye(len(groups))[other]
            slope, error, degrees = self._regression().contrast(contrast)
            plain, plain_error, _ = self._regression(covariates=False).contrast(contrast)
            difference = shares[one] - shares[other]
            lower, upper = interval(difference, drawn[:, one] - drawn[:, other], -1.0, 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                f = (difference / error) ** 2 / degrees
                robustness = np.where(error > 0, (np.sqrt(f**2 + 4 * f) - f) / 2, np.nan)
                p = 2 * stats.norm.sf(np.abs(slope - plain) / np.sqrt(np.maximum(error**2 - plain_error**2, 1e-12)))
            values = zip(outcomes, difference, lower, upper, robustness, slope - plain, p, strict=True)
            lines += [(groups[one], groups[other], *line) for line in values]
        names = ("difference", "difference_lower", "difference_upper", "robustness", "shift", "shift_p")
        found = pd.DataFrame(lines, columns=["group", "other", "outcome", *names])
        return found if self.covariates.shape[1] else found.drop(columns=["shift", "shift_p"])

    def _regression(self, *, covariates: bool = True) -> _Regression:
        design = np.column_stack([self.groups, self.covariates]) if covariates else self.groups
        return _Regression(design, self.outcomes, self.weights)


@dataclass(frozen=True, eq=False)
class _Regression:
    """Weighted least squares of several outcomes."""

    design: FloatArray
    """[precincts, regressors]"""
    values: FloatArray
    """[precincts, outcomes]"""
    weights: FloatArray
    """[precincts]"""

    @cached_property
    def slopes(self) -> FloatArray:
        """[regressors, outcomes]"""
        root = np.sqrt(self.weights)[:, None]
        return np.asarray(np.linalg.lstsq(root * self.design, root * self.values, rcond=None)[0])

    def contrast(self, contrast: FloatArray) -> tuple[FloatArray, FloatArray, int]:
        """Return a contrast of the first slopes [outcomes], its standard errors, and the degrees of freedom."""
        contrast = np.pad(contrast, (0, self.design.shape[1] - len(contrast)))
        degrees = len(self.design) - self.design.shape[1]
        if degrees <= 0:
            return contrast @ self.slopes, np.full(self.values.shape[1], np.nan), 0
        variance = contrast @ np.linalg.pinv((self.design.T * self.weights) @ self.design) @ contrast
        left = self.weights @ (self.values - self.design @ self.slopes) ** 2
        return contrast @ self.slopes, np.asarray(np.sqrt(variance * left / degrees)), degrees

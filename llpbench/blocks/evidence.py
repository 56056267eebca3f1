"""The evidence and posterior of a Gaussian process with observed bag means only.

Targets R [bags, classes] are bag proportions minus the prior. Each class is divided by its standard deviation sqrt(pi
(1 - pi)), so that one covariance serves all classes:

    C = sum_c s_c G_c G_c' + diag(sigma^2 / m_k + noise_k) + omega^2 I

Here G_c are the bag means of component c's features, m_k is the bag's size, `noise_k` the known variance of noise added
to published counts, and omega a random effect of bags, which is separable from sigma only if bags differ in size. Each
class is a separate process. Since their targets sum to zero, C classes count as C - 1 (two as one).

Hyperparameters t: the numbers that determine the logarithms of the scales s (linearly, by `exponents`), then log
sigma^2, then log omega^2 if present; each has a normal prior. Aggregated Gaussian processes: Law et al. 2018, equation
2; gradients of the evidence: Rasmussen & Williams 2006, equation 5.9.

The algebra is done in bags or in features, whichever is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from llpbench.core.bags import FloatArray, IntArray

_JITTER = 1e-10
_MOST_GRAMS = 1.5e8
"""largest size of all Gram matrices together; beyond, the algebra is done in features"""


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent normal priors of the hyperparameters."""

    mean: FloatArray
    std: FloatArray

    def minus_log(self, t: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log density, up to a constant, and its gradient."""
        z = (t - self.mean) / self.std
        return 0.5 * float(z @ z), z / self.std


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the bags for given hyperparameters."""

    scales: FloatArray
    """[components]"""
    alpha: FloatArray
    """[bags, classes] C^-1 R"""
    inverse_times: Callable[[FloatArray], FloatArray]
    """[bags, columns] X -> C^-1 X"""


class Evidence:
    """Minus the log of evidence times prior, as a function of the hyperparameters."""

    def __init__(
        self,
        means: Sequence[FloatArray],
        exponents: FloatArray,
        prior: Prior,
        targets: FloatArray,
        sizes: IntArray,
        noise: FloatArray,
    ) -> None:
        """
        Parameters
        ----------
        means : [bags, features] of each component
        exponents : [components, hyperparameters of scale], log s = exponents @ t
        prior : of these, of log sigma^2 and, with bag effects, of log omega^2
        targets : [bags, classes]
        sizes : [bags] rows in each
        noise : [bags] known variance of the targets
        """
        self.exponents, self.prior, self.targets = exponents, prior, targets
        self.unit = 1.0 / sizes
        self.noise = noise + _JITTER
        self.scale_names = exponents.shape[1]
        self.has_bag_effects = len(prior.mean) == self.scale_names + 2
        bags, features = len(sizes), sum(mean.shape[1] for mean in means)
        in_bags = len(means) * bags**2 <= _MOST_GRAMS and bags <= 4 * features
        self._space: _Bags | _Features = _Bags(means) if in_bags else _Features(means)
        self.means = self._space.parts

    def scales(self, t: FloatArray) -> FloatArray:
        """Return the scales s [components]."""
        return np.asarray(np.exp(self.exponents @ t[: self.scale_names]))

    def diagonal(self, t: FloatArray) -> FloatArray:
        """Return the part of C's diagonal that is added to the components, [bags]."""
        effects = np.exp(t[-1]) if self.has_bag_effects else 0.0
        return np.asarray(np.exp(t[self.scale_names]) * self.unit + self.noise + effects)

    def variances(self, t: FloatArray, sizes: IntArray, noise: FloatArray) -> FloatArray:
        """Return the same diagonal for other bags."""
        effects = np.exp(t[-1]) if self.has_bag_effects else 0.0
        return np.asarray(np.exp(t[self.scale_names]) / sizes + noise + _JITTER + effects)

    def __call__(self, t: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient; infinite if C is infinite or not positive definite in floating point."""
        classes = self.targets.shape[1]
        share = (classes - 1) / classes
        with np.errstate(over="ignore"):  # a search may take too long a step
            scales, diagonal = self.scales(t), self.diagonal(t)
        finite = np.isfinite(scales).all() and np.isfinite(diagonal).all()
        solved = self._space.solve(scales, diagonal, self.targets) if finite else None
        if solved is None:
            return np.inf, np.zeros_like(t)
        by_prior, gradient = self.prior.minus_log(t)
        value = 0.5 * share * float((self.targets * solved.alpha).sum()) + 0.5 * (classes - 1) * solved.log_det
        gradient[: self.scale_names] += 0.5 * (classes - 1) * self.exponents.T @ solved.by_scale
        by_bag = 0.5 * (classes - 1) * solved.by_bag
        gradient[self.scale_names] += np.exp(t[self.scale_names]) * float(by_bag @ self.unit)
        if self.has_bag_effects:
            gradient[-1] += np.exp(t[-1]) * float(by_bag.sum())
        return value + by_prior, gradient

    def posterior(self, t: FloatArray) -> Posterior:
        """Return the posterior. Raises `FloatingPointError` unless C is positive definite."""
        scales = self.scales(t)
        inverse_times = self._space.inverse(scales, self.diagonal(t))
        if inverse_times is None:
            raise FloatingPointError("the covariance of the bags is not positive definite")
        return Posterior(scales, inverse_times(self.targets), inverse_times)


@dataclass(frozen=True, eq=False)
class _Solved:
    """Solutions with C; M = C^-1 - alpha alpha' / classes is the derivative of C's part of the evidence."""

    alpha: FloatArray
    """[bags, classes] C^-1 R"""
    log_det: float
    by_scale: FloatArray
    """[components] trace of s_c G_c' M G_c"""
    by_bag: FloatArray
    """[bags] diagonal of M"""


class _Bags:
    """The algebra in matrices of bags, for up to a few hundred bags."""

    def __init__(self, means: Sequence[FloatArray]) -> None:
        self.bags = len(means[0])
        self.parts = means
        self.lower = np.tril_indices(self.bags)
        self.twice = np.where(self.lower[0] == self.lower[1], 1.0, 2.0)
        self.grams = np.stack([(mean @ mean.T)[self.lower] for mean in means])

    def factor(self, scales: FloatArray, diagonal: FloatArray) -> FloatArray | None:
        """Return the Cholesky factor of C; None unless C is positive definite."""
        covariance = np.zeros((self.bags, self.bags), order="F")
        covariance[self.lower] = scales @ self.grams
        covariance[np.diag_indices(self.bags)] += diagonal
        factor, failed = lapack.dpotrf(covariance, lower=1, overwrite_a=1)
        return None if failed else factor

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
        """Return the map X -> C^-1 X; None unless C is positive definite."""
        factor = self.factor(scales, diagonal)
        return None if factor is None else lambda x: lapack.dpotrs(factor, x, lower=1)[0]

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        factor = self.factor(scales, diagonal)
        if factor is None:
            return None
        log_det = 2 * float(np.log(np.diag(factor)).sum())
        alpha = lapack.dpotrs(factor, targets, lower=1)[0]
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        inner = inverse[self.lower] - (alpha @ alpha.T)[self.lower] / targets.shape[1]
        by_bag = np.diag(inverse) - (alpha**2).mean(axis=1)
        return _Solved(alpha, log_det, scales * (self.grams @ (inner * self.twice)), by_bag)


class _Features:
    """The algebra in matrices of features (Woodbury), linear in the number of bags."""

    def __init__(self, means: Sequence[FloatArray]) -> None:
        self.means = np.hstack(means)
        self.starts = np.cumsum([0, *(mean.shape[1] for mean in means[:-1])])
        self.widths = np.array([mean.shape[1] for mean in means])
        self.parts: Sequence[FloatArray] = np.split(self.means, self.starts[1:], axis=1)

    def factor(self, scales: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return F = D^-1/2 [sqrt(s_c) G_c, ...] and the Cholesky factor of I + F'F; None if there is none."""
        scaled = self.means * np.sqrt(np.repeat(scales, self.widths)) / np.sqrt(diagonal)[:, None]
        inner = scaled.T @ scaled
        inner[np.diag_indices(len(inner))] += 1.0
        factor, failed = lapack.dpotrf(inner, lower=1, overwrite_a=1)
        return None if failed else (scaled, factor)

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
        """Return the map X -> C^-1 X; None if I + F'F has no Cholesky factor."""
        found = self.factor(scales, diagonal)
        if found is None:
            return None
        (scaled, factor), deviation = found, np.sqrt(diagonal)[:, None]

        def times(x: FloatArray) -> FloatArray:
            white = x / deviation
            return np.asarray((white - scaled @ lapack.dpotrs(factor, scaled.T @ white, lower=1)[0]) / deviation)

        return times

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        found = self.factor(scales, diagonal)
        if found is None:
            return None
        (scaled, factor), deviation = found, np.sqrt(diagonal)[:, None]
        half = solve_triangular(factor, scaled.T, lower=True)
        alpha = (targets / deviation - half.T @ (half @ (targets / deviation))) / deviation
        log_det = 2 * float(np.log(np.diag(factor)).sum()) + float(np.log(diagonal).sum())
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        squares = scales * np.add.reduceat(((self.means.T @ alpha) ** 2).mean(axis=1), self.starts)
        by_bag = (1 - (half**2).sum(axis=0)) / diagonal - (alpha**2).mean(axis=1)
        return _Solved(alpha, log_det, np.add.reduceat(1 - np.diag(inverse), self.starts) - squares, by_bag)

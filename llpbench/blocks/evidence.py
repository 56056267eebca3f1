"""The evidence and posterior of a Gaussian process that is observed only through bag means.

Targets R [bags, classes] are bag proportions minus the prior. The targets of each class are divided by its standard
deviation sqrt(pi (1 - pi)), so that one covariance serves all classes:

    C = sum_c s_c G_c G_c' + D,   D = diag(sigma^2 / m_k + noise_k + omega^2)

Here G_c are the bag means of component c's features, m_k is the bag's size, and `noise_k` is the known variance of
noise added to published counts. omega is a random effect of bags; it can be separated from sigma only if bags differ in
size. Each class is a separate process. Targets sum to zero over classes, so the evidence of K classes is weighted as
that of K - 1.

The vector t of hyperparameters is [u, log sigma^2, log omega^2 (if bags differ in size)], with log s = exponents @ u.
Each has a normal prior. `covariance` does the algebra. Aggregated Gaussian processes: Law et al. 2018, equation 2;
gradients of the evidence: Rasmussen & Williams 2006, equation 5.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llpbench.blocks.covariance import Inverse, covariance
from llpbench.core.bags import FloatArray, IntArray

_JITTER = 1e-10


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
class _Posterior:
    """The posterior of the bags for given hyperparameters."""

    scales: FloatArray
    """[components]"""
    alpha: FloatArray
    """[bags, classes] C^-1 R"""
    inverse: Inverse
    """products with C^-1"""


def without_zeros(mean: FloatArray) -> FloatArray:
    """Return bag means [bags, features] without the features that are zero everywhere, such as those of missing values.

    They change neither covariance nor posterior, but the algebra would take longer. The first feature always remains.
    """
    used = np.flatnonzero(mean.any(axis=0))
    return mean if len(used) == mean.shape[1] else mean[:, used if len(used) else [0]]


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
        means : [bags, features] bag means of each component's features
        exponents : [components, hyperparameters of scale], log s = exponents @ u
        prior : prior of t, of log sigma^2 and, with bag effects, of log omega^2
        targets : [bags, classes]
        sizes : [bags] number of rows
        noise : [bags] known variance of the targets
        """
        self.exponents, self.prior, self.targets = exponents, prior, targets
        self.unit = 1.0 / sizes
        self.noise = noise + _JITTER
        self.has_bag_effects = len(prior.mean) == self.n_scale_parameters + 2
        kinds = np.unique(np.stack([self.unit, self.noise]), axis=1, return_inverse=True)[1]
        self.means = means
        self._space = covariance([without_zeros(mean) for mean in means], kinds.ravel())

    @property
    def n_scale_parameters(self) -> int:
        """Number of hyperparameters that determine the scales."""
        return int(self.exponents.shape[1])

    def scales(self, t: FloatArray) -> FloatArray:
        """Return the scales s [components]."""
        return np.asarray(np.exp(self.exponents @ t[: self.n_scale_parameters]))

    def diagonal(self, t: FloatArray) -> FloatArray:
        """Return the diagonal of D [bags]."""
        effects = np.exp(t[-1]) if self.has_bag_effects else 0.0
        return np.asarray(np.exp(t[self.n_scale_parameters]) * self.unit + self.noise + effects)

    def variances(self, t: FloatArray, sizes: IntArray, noise: FloatArray) -> FloatArray:
        """Return the diagonal of D for other bags."""
        effects = np.exp(t[-1]) if self.has_bag_effects else 0.0
        return np.asarray(np.exp(t[self.n_scale_parameters]) / sizes + noise + _JITTER + effects)

    def __call__(self, t: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient. The value is infinite if C is, or if C is not positive definite numerically."""
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
        gradient[: self.n_scale_parameters] += 0.5 * (classes - 1) * self.exponents.T @ solved.by_scale
        by_bag = 0.5 * (classes - 1) * solved.by_bag
        gradient[self.n_scale_parameters] += np.exp(t[self.n_scale_parameters]) * float(by_bag @ self.unit)
        if self.has_bag_effects:
            gradient[-1] += np.exp(t[-1]) * float(by_bag.sum())
        return value + by_prior, gradient

    def posterior(self, t: FloatArray) -> _Posterior:
        """Return the posterior. Raises `FloatingPointError` unless C is positive definite."""
        scales = self.scales(t)
        inverse = self._space.inverse(scales, self.diagonal(t))
        if inverse is None:
            raise FloatingPointError("the covariance of the bags is not positive definite")
        return _Posterior(scales, inverse.times(self.targets), inverse)

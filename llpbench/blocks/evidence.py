"""The evidence and posterior of a Gaussian process that is observed only through bag means.

Targets R [bags, classes] are bag proportions minus the prior. The targets of each class are divided by its standard
deviation sqrt(pi (1 - pi)), so that one covariance serves all classes:

    C = sum_c s_c G_c G_c' + D,   D = diag(sigma^2 / m_k + noise_k + omega^2)

Here G_c are the bag means of component c's features, m_k is the bag's size, and `noise_k` is the known variance of
noise added to published counts. omega is a random effect of bags; it can be separated from sigma only if bags differ in
size. Each class is a separate process. Targets sum to zero over classes, so the evidence of K classes is weighted as
that of K - 1.

The vector t of hyperparameters is [u, log sigma^2, log omega^2 (if bags differ in size)], with log s = exponents @ u.
Each has a normal prior. Aggregated Gaussian processes: Law et al. 2018, equation 2; gradients of the evidence:
Rasmussen & Williams 2006, equation 5.9.

Two classes do the same algebra; `_algebra` picks the one with the least work in each evaluation.

- `_BagSpace` has matrices [bags, bags]. With up to a few hundred bags it stores G_c G_c' of each component. With more
  bags, if features outnumber them, it computes C from the features, and stores G_c G_c' only for wide components.
- `_FeatureSpace` uses Woodbury's identity with F = D^-1/2 [sqrt(s_c) G_c, ...]. It is best for more bags than features.
  If bags have only a few different sizes, it stores the sum of G'G over the bags of each size. The work then does not
  grow with the number of bags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

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
    inverse: _Inverse
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
        - `means`: [bags, features] bag means of each component's features
        - `exponents`: [components, hyperparameters of scale], log s = exponents @ u
        - `prior`: prior of t, of log sigma^2 and, with bag effects, of log omega^2
        - `targets`: [bags, classes]
        - `sizes`: [bags] number of rows
        - `noise`: [bags] known variance of the targets
        """
        self.exponents, self.prior, self.targets = exponents, prior, targets
        self.unit = 1.0 / sizes
        self.noise = noise + _JITTER
        self.has_bag_effects = len(prior.mean) == self.n_scale_parameters + 2
        kinds = np.unique(np.stack([self.unit, self.noise]), axis=1, return_inverse=True)[1]
        self.means = means
        self._space = _algebra([without_zeros(mean) for mean in means], kinds.ravel())

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


_MOST_GRAMS = 1.5e8
"""largest size of all Gram matrices together"""
_MOST_SUMS = 5e7
"""largest size of all sums of G'G together"""
_REPEATED = 20
"""sums of G'G are used only if a kind has at least this many bags on average"""
_READING = 60
"""time to read one entry of a stored Gram matrix and its mirror image, in multiplications"""
_WIDE = 24
"""number of features above which a component's Gram matrix is faster to read than to compute again"""


@dataclass(frozen=True, eq=False)
class _Solved:
    """Solutions with C.

    M = C^-1 - alpha alpha' / classes is the derivative of log det C + trace(R' C^-1 R) / classes with respect to C. R
    are the targets [bags, classes].
    """

    alpha: FloatArray
    """[bags, classes] C^-1 R"""
    log_det: float
    by_scale: FloatArray
    """[components] trace of s_c G_c' M G_c"""
    by_bag: FloatArray
    """[bags] diagonal of M, or its mean over bags that have the same D"""


_Traces = Callable[[Sequence[FloatArray]], list[float]]
"""function that returns tr X' C^-1 X of each X [bags, columns]"""


@dataclass(frozen=True, eq=False)
class _Inverse:
    """Products with C^-1."""

    times: Callable[[FloatArray], FloatArray]
    """[bags, columns] X -> C^-1 X"""
    tracer: Callable[[], _Traces]
    """prepares `_Traces`"""


def _algebra(means: Sequence[FloatArray], kinds: IntArray) -> _BagSpace | _FeatureSpace:
    """Return the algebra with the least work.

    - `means`: [bags, features] G_c of each component
    - `kinds`: [bags] 0, 1, ...; bags of the same kind always have the same D
    """
    bags, width = len(kinds), sum(mean.shape[1] for mean in means)
    few = _few_kinds(kinds, width)
    work = {"bags": 2.0 * bags**2 * width + bags**3, "features": width**3 + (0.0 if few else 2.0 * bags * width**2)}
    if len(means) * bags**2 <= _MOST_GRAMS:
        work["grams"] = float(_READING * len(means) * bags**2 + bags**3)
    best = min(work, key=lambda name: work[name])
    return _FeatureSpace(means, kinds) if best == "features" else _BagSpace(means, 0 if best == "grams" else _WIDE)


def _few_kinds(kinds: IntArray, width: int) -> bool:
    number = int(kinds.max()) + 1
    return bool(number * width**2 <= _MOST_SUMS and number * _REPEATED <= len(kinds))


class _Joined:
    """The features of all components side by side."""

    def __init__(self, means: Sequence[FloatArray]) -> None:
        self.means = np.hstack(means)
        self.starts = np.cumsum([0, *(mean.shape[1] for mean in means[:-1])])
        self.widths = np.array([mean.shape[1] for mean in means])
        self.parts: Sequence[FloatArray] = np.split(self.means, self.starts[1:], axis=1)

    def roots(self, scales: FloatArray) -> FloatArray:
        """Return the root of the scale of each feature."""
        return np.asarray(np.sqrt(np.repeat(scales, self.widths)))

    def of_components(self, of_features: FloatArray) -> FloatArray:
        """Return sums over the features of each component."""
        return np.asarray(np.add.reduceat(of_features, self.starts))

    def explained(self, scales: FloatArray, alpha: FloatArray) -> FloatArray:
        """Return s_c |G_c' alpha|^2 / classes of each component."""
        return scales * self.of_components(((self.means.T @ alpha) ** 2).mean(axis=1))


class _BagSpace(_Joined):
    """The algebra in matrices [bags, bags], computed from features and the Gram matrices of wide components."""

    def __init__(self, means: Sequence[FloatArray], narrow: int) -> None:
        """Components with more than `narrow` features have a Gram matrix, if there is room for all of these."""
        super().__init__(means)
        bags = len(self.means)
        wide = self.widths > narrow
        if wide.sum() * bags**2 > _MOST_GRAMS:
            wide[:] = False
        self.wide = np.flatnonzero(wide)
        self.narrow = np.flatnonzero(np.repeat(~wide, self.widths))
        """features of the other components"""
        self.diagonal = np.cumsum(np.append(0, np.arange(bags, 1, -1)))
        """[bags] indices of the diagonal in a packed matrix"""
        self.grams = np.empty((len(self.wide), bags * (bags + 1) // 2))
        """[wide components, ...] lower triangles, packed column by column"""
        room = np.empty((bags, bags), order="F")
        for gram, c in zip(self.grams, self.wide.tolist(), strict=True):
            gram[:] = _packed(blas.dsyrk(1.0, self.parts[c], c=room, lower=1, overwrite_c=1))

    def factor(self, scales: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return sqrt(s_c) G_c of the narrow components and the Cholesky factor of C; None if C has none."""
        bags = len(diagonal)
        scaled = self.means[:, self.narrow] * self.roots(scales)[self.narrow]
        covariance = lapack.dtpttr(bags, scales[self.wide] @ self.grams, uplo="L")[0]
        if len(self.narrow):
            covariance = blas.dsyrk(1.0, scaled.T, beta=1.0, c=covariance, trans=1, lower=1, overwrite_c=1)
        covariance[np.diag_indices(bags)] += diagonal
        factor, failed = lapack.dpotrf(covariance, lower=1, overwrite_a=1)
        return None if failed else (scaled, factor)

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> _Inverse | None:
        """Return products with C^-1; None unless C is positive definite."""
        found = self.factor(scales, diagonal)
        if found is None:
            return None
        return _Inverse(
            lambda x: lapack.dpotrs(found[1], x, lower=1)[0],
            lambda: lambda many: [_squares(blas.dtrsm(1.0, found[1], x, lower=1)) for x in many],
        )

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        found = self.factor(scales, diagonal)
        if found is None:
            return None
        scaled, factor = found
        alpha, log_det = lapack.dpotrs(factor, targets, lower=1)[0], _log_det(factor)
        of_features = np.zeros(self.means.shape[1])
        if len(self.narrow):
            half = blas.dtrsm(1.0, factor, scaled.T, side=1, lower=1, trans_a=1, overwrite_b=1)  # (L^-1 G)' in place
            of_features[self.narrow] = np.einsum("ij,ij->i", half, half)
        traces = self.of_components(of_features)
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        by_bag = np.diag(inverse).copy()
        if len(self.wide):
            inner = _packed(inverse)
            inner *= 2.0
            inner[self.diagonal] = by_bag
            traces[self.wide] = scales[self.wide] * (self.grams @ inner)
        return _Solved(alpha, log_det, traces - self.explained(scales, alpha), by_bag - (alpha**2).mean(axis=1))


class _FeatureSpace(_Joined):
    """The algebra in matrices [features, features]."""

    def __init__(self, means: Sequence[FloatArray], kinds: IntArray) -> None:
        super().__init__(means)
        self.kinds = kinds
        self.counts = np.bincount(kinds)
        self.first = np.unique(kinds, return_index=True)[1]
        """[kinds] one bag of each kind"""
        self.sums: FloatArray | None = None
        """[kinds, features, features] G'G of the bags of each kind"""
        if _few_kinds(kinds, self.means.shape[1]):
            self.sums = np.stack([part.T @ part for part in (self.means[kinds == k] for k in range(len(self.counts)))])

    def factor(self, scales: FloatArray, diagonal: FloatArray) -> FloatArray | None:
        """Return the Cholesky factor of I + F'F; None if it has none."""
        roots = self.roots(scales)
        if self.sums is None:
            scaled = self._whitened(roots, diagonal)
            inner = scaled.T @ scaled
        else:
            inner = np.tensordot(1 / diagonal[self.first], self.sums, 1)
            inner *= roots
            inner *= roots[:, None]
        inner[np.diag_indices(len(inner))] += 1.0
        factor, failed = lapack.dpotrf(inner.T, lower=1, overwrite_a=1)
        return None if failed else factor

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> _Inverse | None:
        """Return products with C^-1; None if I + F'F has no Cholesky factor."""
        factor = self.factor(scales, diagonal)
        if factor is None:
            return None
        scaled, deviation = self._whitened(self.roots(scales), diagonal), np.sqrt(diagonal)[:, None]

        def times(x: FloatArray) -> FloatArray:
            white = x / deviation
            return np.asarray((white - scaled @ lapack.dpotrs(factor, scaled.T @ white, lower=1)[0]) / deviation)

        def tracer() -> _Traces:
            half = blas.dtrsm(1.0, factor, (scaled / deviation).T, lower=1, overwrite_b=1)

            def traces(many: Sequence[FloatArray]) -> list[float]:
                crossed = np.split(half @ np.hstack(many), np.cumsum([each.shape[1] for each in many])[:-1], axis=1)
                return [_squares(x / deviation) - _squares(part) for x, part in zip(many, crossed, strict=True)]

            return traces

        return _Inverse(times, tracer)

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        factor = self.factor(scales, diagonal)
        if factor is None:
            return None
        roots = self.roots(scales)
        weights = roots[:, None] * (self.means.T @ (targets / diagonal[:, None]))
        away = self.means @ (roots[:, None] * lapack.dpotrs(factor, weights, lower=1)[0])
        alpha = (targets - away) / diagonal[:, None]
        log_det = _log_det(factor) + float(np.log(diagonal).sum())
        if self.sums is None:
            scaled = self._whitened(roots, diagonal)
            half = blas.dtrsm(1.0, factor, scaled.T, lower=1, overwrite_b=1)
            leverage = np.einsum("ij,ij->j", half, half)
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        kept = np.diag(inverse).copy()
        if self.sums is not None:
            leverage = self._leverage(inverse, roots, diagonal)
        traces = self.of_components(1 - kept) - self.explained(scales, alpha)
        return _Solved(alpha, log_det, traces, (1 - leverage) / diagonal - (alpha**2).mean(axis=1))

    def _whitened(self, roots: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Return F [bags, features]."""
        scaled = self.means * roots
        scaled /= np.sqrt(diagonal)[:, None]
        return scaled

    def _leverage(self, inverse: FloatArray, roots: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Return the diagonal of F (I + F'F)^-1 F', as a mean over bags of a kind; `inverse` has the lower triangle."""
        assert self.sums is not None
        traces = np.empty(len(self.sums))
        traces[0] = len(inverse) - np.trace(inverse)  # total; kind 0 is what remains without the other kinds
        if len(traces) > 1:
            twice = 2.0 * np.tril(inverse, -1)
            twice[np.diag_indices(len(twice))] = np.diag(inverse)
            twice *= roots
            twice *= roots[:, None]
            for kind in range(1, len(traces)):
                traces[kind] = float(np.vdot(twice, self.sums[kind])) / diagonal[self.first[kind]]
                traces[0] -= traces[kind]
        return np.asarray((traces / self.counts)[self.kinds])


def _packed(matrix: FloatArray) -> FloatArray:
    """Return the lower triangle of a matrix, column by column."""
    return np.asarray(lapack.dtrttp(matrix, uplo="L")[0])


def _squares(values: FloatArray) -> float:
    return float(np.einsum("ij,ij->", values, values))


def _log_det(factor: FloatArray) -> float:
    return 2 * float(np.log(np.diag(factor)).sum())

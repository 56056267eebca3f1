"""The covariance of bags, C = sum_c s_c G_c G_c' + D, with G_c the bag means of component c and D diagonal.

Three classes do the same algebra; `covariance` picks the one with the least work in each evaluation.

- `Grams` stores the matrix G_c G_c' of each component. It is best for up to a few hundred bags.
- `BagSpace` computes C from the features, and stores G_c G_c' only for wide components. It is best for many bags, if
  features outnumber them.
- `Features` uses Woodbury's identity with F = D^-1/2 [sqrt(s_c) G_c, ...]. It is best for more bags than features. If
  bags have only a few different sizes, it stores the sum of G'G over the bags of each size. The work then does not grow
  with the number of bags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from llpbench.core.bags import FloatArray, IntArray

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


Traces = Callable[[Sequence[FloatArray]], list[float]]
"""function that returns tr X' C^-1 X of each X [bags, columns]"""


@dataclass(frozen=True, eq=False)
class Inverse:
    """Products with C^-1."""

    times: Callable[[FloatArray], FloatArray]
    """[bags, columns] X -> C^-1 X"""
    tracer: Callable[[], Traces]
    """prepares `Traces`"""


def covariance(means: Sequence[FloatArray], kinds: IntArray) -> Grams | BagSpace | Features:
    """Return the algebra with the least work.

    Parameters
    ----------
    means : [bags, features] G_c of each component
    kinds : [bags] 0, 1, ...; bags of the same kind always have the same D
    """
    bags, width = len(kinds), sum(mean.shape[1] for mean in means)
    few = _few_kinds(kinds, width)
    work = {"bags": 2.0 * bags**2 * width + bags**3, "features": width**3 + (0.0 if few else 2.0 * bags * width**2)}
    if len(means) * bags**2 <= _MOST_GRAMS:
        work["grams"] = float(_READING * len(means) * bags**2 + bags**3)
    best = min(work, key=lambda name: work[name])
    return Grams(means) if best == "grams" else BagSpace(means) if best == "bags" else Features(means, kinds)


def _few_kinds(kinds: IntArray, width: int) -> bool:
    number = int(kinds.max()) + 1
    return bool(number * width**2 <= _MOST_SUMS and number * _REPEATED <= len(kinds))


class Grams:
    """The algebra in matrices [bags, bags], with the Gram matrix of each component."""

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

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> Inverse | None:
        """Return products with C^-1; None unless C is positive definite."""
        factor = self.factor(scales, diagonal)
        return None if factor is None else _inverse_of(factor)

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        factor = self.factor(scales, diagonal)
        if factor is None:
            return None
        alpha = lapack.dpotrs(factor, targets, lower=1)[0]
        log_det = _log_det(factor)
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        inner = inverse[self.lower] - (alpha @ alpha.T)[self.lower] / targets.shape[1]
        by_bag = np.diag(inverse) - (alpha**2).mean(axis=1)
        return _Solved(alpha, log_det, scales * (self.grams @ (inner * self.twice)), by_bag)


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


class BagSpace(_Joined):
    """The algebra in matrices [bags, bags], computed from features and the Gram matrices of wide components."""

    def __init__(self, means: Sequence[FloatArray]) -> None:
        super().__init__(means)
        bags = len(self.means)
        wide = self.widths > _WIDE
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

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> Inverse | None:
        """Return products with C^-1; None unless C is positive definite."""
        found = self.factor(scales, diagonal)
        return None if found is None else _inverse_of(found[1])

    def solve(self, scales: FloatArray, diagonal: FloatArray, targets: FloatArray) -> _Solved | None:
        """Return the terms of value and gradient; None unless C is positive definite."""
        found = self.factor(scales, diagonal)
        if found is None:
            return None
        scaled, factor = found
        alpha, log_det = lapack.dpotrs(factor, targets, lower=1)[0], _log_det(factor)
        half = blas.dtrsm(1.0, factor, scaled.T, side=1, lower=1, trans_a=1, overwrite_b=1)  # (L^-1 G)' in place
        of_features = np.zeros(self.means.shape[1])
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


class Features(_Joined):
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

    def inverse(self, scales: FloatArray, diagonal: FloatArray) -> Inverse | None:
        """Return products with C^-1; None if I + F'F has no Cholesky factor."""
        factor = self.factor(scales, diagonal)
        if factor is None:
            return None
        scaled, deviation = self._whitened(self.roots(scales), diagonal), np.sqrt(diagonal)[:, None]

        def times(x: FloatArray) -> FloatArray:
            white = x / deviation
            return np.asarray((white - scaled @ lapack.dpotrs(factor, scaled.T @ white, lower=1)[0]) / deviation)

        def tracer() -> Traces:
            half = blas.dtrsm(1.0, factor, (scaled / deviation).T, lower=1, overwrite_b=1)

            def traces(many: Sequence[FloatArray]) -> list[float]:
                crossed = np.split(half @ np.hstack(many), _ends(many), axis=1)
                return [_squares(x / deviation) - _squares(part) for x, part in zip(many, crossed, strict=True)]

            return traces

        return Inverse(times, tracer)

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


def _ends(matrices: Sequence[FloatArray]) -> IntArray:
    """Return the columns at which all but the first matrix begin if the matrices stand side by side."""
    return np.cumsum([each.shape[1] for each in matrices])[:-1]


def _inverse_of(factor: FloatArray) -> Inverse:
    """Return products with the inverse of a matrix, given its Cholesky factor."""
    return Inverse(
        lambda x: lapack.dpotrs(factor, x, lower=1)[0],
        lambda: lambda many: [_squares(blas.dtrsm(1.0, factor, x, lower=1)) for x in many],
    )


def _packed(matrix: FloatArray) -> FloatArray:
    """Return the lower triangle of a matrix, column by column."""
    return np.asarray(lapack.dtrttp(matrix, uplo="L")[0])


def _squares(values: FloatArray) -> float:
    return float(np.einsum("ij,ij->", values, values))


def _log_det(factor: FloatArray) -> float:
    return 2 * float(np.log(np.diag(factor)).sum())

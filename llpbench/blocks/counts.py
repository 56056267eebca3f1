"""Posteriors of rows given the counts of their bag and a model's predictions.

Rows of a bag are assumed independent given their features. Maximum likelihood from aggregate observations: Zhang et al.
2020; the count loss: Shukla et al. 2023.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy.special import expit, logsumexp, softmax

from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import BaggedRows, FloatArray, IntArray

_EXACT = 12
"""largest bag whose posterior of two classes is exact"""


class BagCounts:
    """The counts of some bags, and the posterior of their rows' classes."""

    def __init__(self, train: BaggedRows) -> None:
        """All counts in `train` must be known."""
        self.bag_of_row, self.sizes = train.bag_of_row, train.sizes
        self.counts = train.proportions * train.sizes[:, None]
        self.noise = train.noise**2
        sizes = train.sizes
        exact = (sizes <= _EXACT) & (train.noise == 0) & (train.counts == np.round(train.counts)).all(axis=1)
        self.small = np.flatnonzero(exact)
        """bags whose posterior is exact"""
        self.rows = train.padded(self.small, int(sizes[self.small].max(initial=0)))
        """[small bags, size] rows of these bags, padded with -1"""
        self.weights: FloatArray | None = None

    def weighted(self, weights: FloatArray) -> BagCounts:
        """Return the counts of the people whom rows stand for: `weights` [rows]. Bags keep their proportions."""
        people = copy(self)
        people.weights = weights
        people.sizes = people.sums(np.ones(len(weights)))  # type: ignore[assignment]  # fractions of people
        people.counts = self.counts / self.sizes[:, None] * people.sizes[:, None]
        return people

    def folded(self, same: Distinct) -> tuple[BagCounts, IntArray]:
        """Return the counts of cells, and the first row of each cell [cells].

        A cell stands for all equal rows of a bag. Each row of a small bag, whose posterior is exact, is its own cell.
        """
        key = self.bag_of_row * len(same.first) + same.place
        alone = np.flatnonzero(np.isin(self.bag_of_row, self.small))
        key[alone] = -1 - alone
        _, first, cell_of_row = np.unique(key, return_index=True, return_inverse=True)
        cells = copy(self)
        cells.bag_of_row = self.bag_of_row[first]
        cells.weights = np.bincount(cell_of_row).astype(np.float64)
        cells.rows = np.where(self.rows >= 0, cell_of_row[self.rows], -1)
        return cells, np.asarray(first, dtype=np.int64)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` [rows] in each bag."""
        values = values if self.weights is None else self.weights * values
        return np.asarray(np.bincount(self.bag_of_row, values, len(self.sizes)), dtype=np.float64)

    def posterior(self, proba: FloatArray) -> FloatArray:
        """Return the posterior [rows, classes] of each row's class, given `proba` [rows, classes] and its bag's counts.

        With V_i the covariance of a row's indicators, it is approximately q_i = p_i + V_i (sum V)^-1 (n - sum p). Noise
        in the counts adds its variance to sum V. For two classes, small bags are exact (Poisson-binomial).
        """
        classes = proba.shape[1]
        if classes == 2:
            q = self.binary_posterior(proba[:, 1])
            return np.stack([1 - q, q], axis=1)
        sums, total = self._moments(proba, self.noise, 1e-9)
        # the indicators of a row add up to one, so the last class follows from the others
        solved = np.linalg.solve(total[:, :-1, :-1], (self.counts - sums)[:, :-1, None])[:, :, 0]
        pull = np.column_stack([solved, np.zeros(len(sums))])[self.bag_of_row]
        q = (proba * (1 + pull - (proba * pull).sum(axis=1, keepdims=True))).clip(1e-12, 1)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    def binary_posterior(self, p: FloatArray) -> FloatArray:
        """Return the posterior of the second of two classes [rows]."""
        variance = p * (1 - p)
        lacking = self.counts[:, 1] - self.sums(p)
        total = self.sums(variance) + self.noise
        q = p + variance * (lacking / np.maximum(total, 1e-12))[self.bag_of_row]
        if len(self.small):
            rows, exact, _ = self.exact(p, 1)
            q[rows] = exact
        return np.asarray(q.clip(0, 1))

    def exact(self, p: FloatArray, label: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the rows of small bags, their posteriors of a class, and the probability of each small bag's count.

        `p` [rows] are the probabilities of the class. The count of a bag has a Poisson-binomial distribution.
        """
        inside = self.rows >= 0  # padding has probability 0 of the class
        counts = np.rint(self.counts[self.small, label]).astype(np.int64)
        padded = np.where(inside, p[self.rows], 0.0)
        posterior, likelihood = _poisson_binomial(padded, counts, self.sizes[self.small])
        return self.rows[inside], posterior[inside], likelihood

    def fitted(self, logits: FloatArray) -> FloatArray:
        """Return softmax(logits + b) [rows, classes], with b [bags, classes] from `shifts`."""
        shifts = self.shifts(logits)[self.bag_of_row]
        if logits.shape[1] == 2:
            p = expit((logits[:, 1] - logits[:, 0]).astype(np.float64) + shifts[:, 1])
            return np.stack([1 - p, p], axis=1)
        return np.asarray(softmax(logits + shifts, axis=1))

    def adding_up(self, logits: FloatArray, rounds: int = 2000) -> FloatArray:
        """Return softmax(logits + b) [rows, classes], with b chosen for each bag so that its rows add up to its counts.

        `shifts` gives a first b. Then columns and rows are scaled in turn, which preserves the form, until every sum is
        within a billionth of the bag's size. A class with a count of 0 gets probability 0, which no finite shift
        achieves.
        """
        proba = softmax(logits + self.shifts(logits)[self.bag_of_row], axis=1)
        for _ in range(rounds):
            sums = np.stack([self.sums(column) for column in proba.T], axis=1)
            if (np.abs(sums - self.counts) <= 1e-9 * self.sizes[:, None]).all():
                break
            proba = proba * (self.counts / np.maximum(sums, 1e-300))[self.bag_of_row]
            proba = proba / proba.sum(axis=1, keepdims=True)
        return np.asarray(proba)

    def shifts(self, logits: FloatArray, rounds: int = 60) -> FloatArray:
        """Return b [bags, classes] for which the mean of softmax(logits + b) over each bag equals its proportions.

        Two classes: Newton's method with bisection. More: columns and rows are scaled in turn (Sinkhorn). No finite
        shift reaches 0 or 1, so a proportion of 1 loses half a row, at most a hundredth; absent classes share it.
        """
        bags, classes = self.counts.shape
        half = np.minimum(0.5 / self.sizes, 0.01)[:, None]
        target = (self.counts / self.sizes[:, None]).clip(half / (classes - 1), 1 - half)
        target = target / target.sum(axis=1, keepdims=True)
        of_row = self.bag_of_row
        found = np.zeros((bags, classes))
        if classes == 2:
            z = (logits[:, 1] - logits[:, 0]).astype(np.float64)
            most = 10 + float(np.abs(z).max())
            low, high = np.full(bags, -most), np.full(bags, most)
            shift = found[:, 1]
            for _ in range(rounds):
                p = expit(z + shift[of_row])
                gap = self.sums(p) / self.sizes - target[:, 1]
                if np.abs(gap).max() < 1e-6:
                    break
                low, high = np.where(gap < 0, shift, low), np.where(gap < 0, high, shift)
                slope = self.sums(p * (1 - p)) / self.sizes
                step = shift - gap / np.maximum(slope, 1e-12)
                shift[:] = np.where((step > low) & (step < high), step, (low + high) / 2)
            return found
        for _ in range(rounds):
            proba = softmax(logits + found[of_row], axis=1)
            sums = np.stack([self.sums(proba[:, c]) for c in range(classes)], axis=1)
            factor = target * self.sizes[:, None] / np.maximum(sums, 1e-12)
            if np.abs(factor - 1).max() < 1e-4:
                break
            found += np.log(factor)
        return found

    def bag_effects(self, logits: FloatArray) -> FloatArray:
        """Return random effects b [bags, classes] of bags on logits: the posterior mode given counts, b ~ N(0, tau^2).

        Given its rows' logits z, a bag's log P(n | b) is n b - sum_i log sum_c exp(z_ic + b_c) plus a constant. This is
        an exponential family, whose gradient is n minus the sum of predictions. The effect of a large bag is nearly
        the shift that matches its proportions (`shifts`). A small bag, whose proportions are mostly chance, has nearly
        none. tau is the element of `_SPREADS` with the largest Laplace evidence. It is the smallest if features explain
        how bags differ. With noise of variance s^2, counts are normal with covariance V + s^2 I, where V is the
        covariance for independent rows.
        """
        best = -np.inf
        chosen: FloatArray = np.zeros(self.counts.shape)
        effects = chosen
        for spread in _SPREADS:
            effects, evidence = self.effects_of_spread(logits, spread, effects)
            if evidence > best:
                best, chosen = evidence, effects
        return chosen

    def effects_of_spread(
        self, logits: FloatArray, spread: float, start: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return `bag_effects` for a given tau, and the Laplace evidence.

        Without noise in the counts, the evidence omits a term that depends on the logits alone. It can then compare
        values of tau, but not logits.
        """
        classes = self.counts.shape[1]
        effects: FloatArray = np.zeros(self.counts.shape) if start is None else start
        precision = np.eye(classes) / spread**2
        for _ in range(50):
            sums, covariance = self._moments(softmax(logits + effects[self.bag_of_row], axis=1))
            pull, information = self._seen_through_noise(self.counts - sums, covariance)
            gradient = pull - effects / spread**2
            step = np.linalg.solve(information + precision, gradient[:, :, None])[:, :, 0].clip(-2, 2)
            effects = effects + step
            if np.abs(step).max() < 1e-4:
                break
        sums, covariance = self._moments(softmax(logits + effects[self.bag_of_row], axis=1))
        information = self._seen_through_noise(self.counts - sums, covariance)[1]
        if self.noise:
            total, lacking = covariance + self.noise * np.eye(classes), self.counts - sums
            away = (lacking * np.linalg.solve(total, lacking[:, :, None])[:, :, 0]).sum()
            fit = -(away + np.linalg.slogdet(total)[1].sum()) / 2
        else:
            fit = (self.counts * effects).sum() - self.total(logsumexp(logits + effects[self.bag_of_row], axis=1))
        doubt = np.linalg.slogdet(np.eye(classes) + spread**2 * information)[1].sum()
        return effects, float(fit - ((effects**2).sum() / spread**2 + doubt) / 2)

    def total(self, values: FloatArray) -> float:
        """Return the sum of `values` [rows]."""
        return float(values.sum() if self.weights is None else self.weights @ values)

    def _seen_through_noise(self, lacking: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient V (V + s^2 I)^-1 `lacking` [bags, classes], and the information V (V + s^2 I)^-1 V."""
        if not self.noise:
            return lacking, covariance
        weight = np.linalg.solve(covariance + self.noise * np.eye(covariance.shape[-1]), covariance)
        return (weight.transpose(0, 2, 1) @ lacking[:, :, None])[:, :, 0], covariance @ weight

    def _moments(self, proba: FloatArray, *variances: float) -> tuple[FloatArray, FloatArray]:
        """Return mean [bags, classes] and covariance [bags, classes, classes] of counts of independent rows.

        `proba` [rows, classes] are their probabilities. Each count also has independent errors of these `variances`.
        """
        bags, classes = self.counts.shape
        sums: FloatArray = np.stack([self.sums(each) for each in proba.T], axis=1)
        covariance = np.zeros((bags, classes, classes))
        for c in range(classes):
            for d in range(c + 1):
                covariance[:, c, d] = covariance[:, d, c] = -self.sums(proba[:, c] * proba[:, d])
        covariance[:, range(classes), range(classes)] += sum(variances, start=sums)
        return sums, covariance


_SPREADS = tuple(0.01 * 2.0**power for power in range(9))
"""standard deviations of bags' random effects on logits, 0.01 to 2.6"""


def _poisson_binomial(proba: FloatArray, counts: IntArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return P(y_i = 1 | sum of y = n) [bags, size] and P(sum of y = n) [bags], with n = `counts` [bags].

    The y_i are independent with `proba` [bags, size]. Padding, beyond the `sizes` [bags], must have probability 0. Sums
    are built from left and right; time and memory grow with the square of the width. If rows are certain and the count
    is impossible, the first result is n / size.
    """
    bags, size = proba.shape
    p = np.ascontiguousarray(proba.T)
    left, after = np.zeros((size + 1, size + 1, bags)), np.zeros((size + 2, bags))
    left[0, 0] = 1.0
    for i in range(size):  # left[i, j]: the first i rows sum to j
        np.multiply(left[i, : i + 1], 1 - p[i], out=left[i + 1, : i + 1])
        left[i + 1, 1 : i + 2] += left[i, : i + 1] * p[i]
    after[counts, np.arange(bags)] = 1.0  # after[j]: the rows from i on sum to n - j
    others = np.empty((size, bags))
    for i in reversed(range(size)):
        np.einsum("jb,jb->b", left[i, : i + 1], after[1 : i + 2], out=others[i])
        after[:-1] = after[:-1] * (1 - p[i]) + after[1:] * p[i]
    total = left[size, counts, np.arange(bags)]
    posterior = np.where(total > 0, p * others / np.where(total > 0, total, 1.0), counts / sizes)
    return np.asarray(posterior.T), total

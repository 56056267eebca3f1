"""Draws of the number of rows of a class in each group of a bag, given the counts of bags.

In a draw each row has a latent value, the sum of

- its logit in the model;
- a deviation of that logit (`logit_draws.py`), because effects of features are uncertain;
- an effect of the row's group, the same in all bags, for what features do not say about the group;
- a multiple of the group's mean logit minus that of all rows, because models of bags tend to shrink effects;
- an effect of the group in this bag, with the standard deviation tau of the effects of bags (`bag_effects.py`);
- logistic noise, for the randomness of the row.

Draws of effects of groups and of deviations are the same for all rows. All others are drawn in each piece of whole bags
(`bag_effects.pieces`), so they do not depend on the number of rows in memory.

In a bag with n rows of the class, these are the n rows with the largest latent values. So every draw matches all
counts. This is Pareto sampling (Rosen 1997), which is close to independent rows given their sum.

The uncertainty of effects of groups is that of a regression of bags' proportions on their shares of groups (Goodman
1953), with the prior `_EFFECT`:

- The information of a bag is limited by the randomness of its rows and by tau.
- Other features that vary between bags together with a group may act in its place. The regression therefore also has
  the mean of bags' logits without differences between groups, whose factor is uncertain (`_SHRUNK`).
- More bags do not remove this limit, because effects of bags may be correlated with shares of groups (the ecological
  fallacy, a correlation of about `_CONFOUNDED`).
- A group whose share hardly differs between bags keeps its prior.
- Deviations of logits already include a part of this uncertainty, so half of their variance is subtracted.
- Draws have heavy tails (`_DEGREES`), because a few groups are unlike all others.

These numbers were chosen on 22 tables with hidden labels and tested on eight others (`benchmarks/groups.py`,
docs/group-estimates.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logit

from llpbench.core.bags import BoolArray, FloatArray, IntArray, Rows
from llpbench.owndata.logit_draws import Deviations

DRAWS = 200
"""Number of draws of the counts of groups."""
_AT_ONCE, _VALUES = 20, 1 << 24
"""Smallest number of draws that are in memory for all rows, and number of their values for few rows."""
FIRST = 40
"""Number of draws for the variance of deviations in groups."""
_EFFECT = 1.0
"""Prior standard deviation of effects of groups, on logits."""
_CONFOUNDED = 0.5
"""Assumed correlation of the effects of bags with their shares of a group."""
_DEGREES = 4
"""Degrees of freedom of the effects of groups."""
_SHRUNK = 0.4
"""Standard deviation of the factor between true effects of groups and those of the model."""
_TWICE = 0.5
"""Share of the variance of logits' deviations that effects of groups already include."""
_UNKNOWN_TAU = 0.5
"""Standard deviation of effects of bags if there are too few bags to estimate it."""
_LEAST_TAU = 0.05
_LEAST = 1e-6
"""smallest probability of a row"""


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows of groups in bags. A cell is a group in a bag that has rows."""

    bag_of_row: IntArray
    """[rows]"""
    group_of_row: IntArray
    """[rows]"""
    bags: int
    groups: int

    @cached_property
    def _cells(self) -> tuple[IntArray, IntArray]:
        numbers, cell_of_row = np.unique(self.bag_of_row * self.groups + self.group_of_row, return_inverse=True)
        return np.asarray(numbers, dtype=np.int64), np.asarray(cell_of_row, dtype=np.int64)

    @property
    def cell_of_row(self) -> IntArray:
        """[rows]"""
        return self._cells[1]

    @property
    def bag_of_cell(self) -> IntArray:
        """[cells], in ascending order"""
        return self._cells[0] // self.groups

    @property
    def group_of_cell(self) -> IntArray:
        """[cells]"""
        return self._cells[0] % self.groups

    @cached_property
    def cell_sizes(self) -> IntArray:
        """[cells] number of rows"""
        return self.by_cell(np.ones(len(self.bag_of_row))).astype(np.int64)

    @cached_property
    def bag_sizes(self) -> IntArray:
        """[bags] number of rows"""
        return np.bincount(self.bag_of_row, minlength=self.bags).astype(np.int64)

    def by_cell(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` [rows] in each cell."""
        return np.asarray(np.bincount(self.cell_of_row, values, len(self._cells[0])), dtype=np.float64)

    def by_group(self, values: FloatArray | IntArray) -> FloatArray:
        """Return the sums of `values` [cells, ...] in each group [groups, ...]."""
        sums = np.zeros((self.groups, *values.shape[1:]))
        np.add.at(sums, self.group_of_cell, values)
        return sums

    @cached_property
    def order(self) -> IntArray:
        """[rows] positions of rows, bag by bag"""
        return np.argsort(self.bag_of_row, kind="stable")


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Number of rows of one class in each bag."""

    numbers: FloatArray
    """[bags]; NaN if not known"""
    noise: float = 0.0
    """standard deviation of the noise of the numbers"""
    of_rows: bool = True
    """True if these rows were counted; False if the rows are a sample, or other rows with these shares"""

    @property
    def exact(self) -> bool:
        """Whether the numbers are exact counts of these rows."""
        return self.of_rows and not self.noise

    def some(self, bags: slice) -> ClassCounts:
        """Return the counts of some bags."""
        return replace(self, numbers=self.numbers[bags])

    def drawn(self, sizes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return whole numbers [bags] between 0 and `sizes`, NaN if not known."""
        known = np.isfinite(self.numbers)
        share = np.clip(np.where(known, self.numbers, 0.0) / sizes, 0.0, 1.0)
        if not self.of_rows:
            found = rng.binomial(sizes, share).astype(np.float64)
        else:
            found = share * sizes + self.noise * rng.standard_normal(len(sizes))
            found = np.floor(found + 1e-9 + (1 - 2e-9) * rng.random(len(sizes)))  # stochastic rounding
        return np.where(known, found.clip(0, sizes), np.nan)


class EffectsOfGroups:
    """Effects of groups on the logits of one class: sums from one pass over pieces of whole bags, then draws."""

    def __init__(self, groups: int, counts: ClassCounts, tau: float, deviations: Deviations) -> None:
        """`tau` is the standard deviation of effects of bags (NaN: not known); `deviations` are `FIRST` draws."""
        self.tau = max(tau, _LEAST_TAU) if np.isfinite(tau) else _UNKNOWN_TAU
        self._known, self._deviations = np.isfinite(counts.numbers), deviations
        self._rows, self._logits, self._away = np.zeros(groups), np.zeros(groups), np.zeros((groups, FIRST))
        self._inner, self._sums, self._weight = np.zeros((groups + 1,) * 2), np.zeros(groups + 1), 0.0

    def add(self, grouped: GroupedRows, bags: slice, rows: Rows, proba: FloatArray) -> None:
        """Add some `bags`; `proba` [rows] are probabilities of the class, which add up to the counts of bags."""
        sizes, of_row, logits = grouped.bag_sizes, grouped.group_of_row, _logits(proba)
        self._rows += np.bincount(of_row, minlength=grouped.groups)
        self._logits += np.bincount(of_row, logits, grouped.groups)
        for away, sums in zip(self._deviations(rows, slice(None)).T, self._away.T, strict=True):
            sums += np.bincount(of_row, away, grouped.groups)
        shares = np.zeros((grouped.bags, grouped.groups))
        shares[grouped.bag_of_cell, grouped.group_of_cell] = grouped.cell_sizes / sizes[grouped.bag_of_cell]
        means = np.bincount(grouped.bag_of_row, logits, grouped.bags) / sizes
        variance = np.bincount(grouped.bag_of_row, proba * (1 - proba), grouped.bags) / sizes
        noise = 1 / (sizes * np.maximum(variance, 1e-3))
        weight = self._known[bags] / (noise + self.tau**2 * max(1.0, _CONFOUNDED**2 * self._known.sum()))
        regressors = np.column_stack([shares, means])
        self._inner += (regressors * weight[:, None]).T @ regressors
        self._sums += weight @ regressors
        self._weight += weight.sum()

    def draws(self, rng: np.random.Generator) -> FloatArray:
        """Return draws of the effects [groups, `DRAWS`]."""
        means = self._logits / self._rows - self._logits.sum() / self._rows.sum()
        root = self._root(means)
        away = self._away / self._rows[:, None] - self._away.sum(axis=0) / self._rows.sum()
        twice = (away**2).mean(axis=1) / np.maximum((root**2).sum(axis=1), 1e-12)
        root = root * np.sqrt(1 - _TWICE * twice.clip(0, 1))[:, None]
        heavy = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, DRAWS))
        drawn = (root @ rng.standard_normal((root.shape[1], DRAWS))) * heavy
        return np.asarray(drawn + _SHRUNK * means[:, None] * rng.standard_normal(DRAWS))

    def _root(self, means: FloatArray) -> FloatArray:
        """Return R [groups, factors], where R R' is the covariance of effects of groups, on logits."""
        groups = len(means)
        without = np.eye(groups + 1)  # bags' mean logits without differences between groups
        without[:groups, -1] = -means
        centred = self._inner - np.outer(self._sums, self._sums) / max(self._weight, 1e-12)
        prior = np.append(np.full(groups, _EFFECT), _SHRUNK)
        values, vectors = np.linalg.eigh(np.diag(1 / prior**2) + without.T @ centred @ without)
        root = (vectors / np.sqrt(values))[:groups]  # whatever the other features' factor is
        return np.asarray(root - self._rows / self._rows.sum() @ root)  # counts determine the common part of all groups


def drawn_counts(
    grouped: GroupedRows,
    rows: Rows,
    proba: FloatArray,
    counts: ClassCounts,
    deviations: Deviations,
    effects: FloatArray,
    tau: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Return draws [cells, draws] of the number of rows of a class in some whole bags.

    `proba` [rows] are probabilities of the class, which add up to the `counts` of these bags. `effects` [groups, draws]
    and `tau` are those of `EffectsOfGroups`.
    """
    logits, found = _logits(proba), np.empty((len(grouped.cell_sizes), DRAWS))
    at_once = max(_AT_ONCE, _VALUES // len(logits))
    for start in range(0, DRAWS, at_once):
        for draw, away in enumerate(deviations(rows, slice(start, start + at_once)).T, start):
            of_cell = effects[grouped.group_of_cell, draw] + tau * rng.standard_normal(len(found))
            of_bag = tau * rng.standard_normal(grouped.bags)  # only needed if the count is not known
            latent = logits + away + of_cell[grouped.cell_of_row] + of_bag[grouped.bag_of_row]
            latent += rng.logistic(size=len(logits))
            chosen = _chosen(grouped, latent, counts.drawn(grouped.bag_sizes, rng))
            found[:, draw] = grouped.by_cell(chosen.astype(np.float64))
    return found


def _logits(proba: FloatArray) -> FloatArray:
    return np.asarray(logit(proba.clip(_LEAST, 1 - _LEAST)))


def _chosen(grouped: GroupedRows, latent: FloatArray, numbers: FloatArray) -> BoolArray:
    """Return the rows of the class [rows]: the largest values of each bag, or those above 0 if its count is unknown."""
    bags, order = grouped.bag_of_row, grouped.order
    within = np.lexsort((-latent[order], bags[order]))
    sorted_rows = order[within]
    starts = np.cumsum(grouped.bag_sizes) - grouped.bag_sizes
    rank = np.empty(len(latent))
    rank[sorted_rows] = np.arange(len(latent)) - starts[bags[sorted_rows]]
    number = numbers[bags]
    return np.asarray(np.where(np.isnan(number), latent > 0, rank < number))

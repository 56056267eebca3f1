"""bag-forest: a random forest with splits and leaf values fitted to the proportions of bags.

    p̄ₖ = Σⱼ Hₖⱼ θⱼ + noise,  Hₖⱼ the fraction of bag k in leaf j;  f(x) = mean of θ over trees
    θⱼ: class proportions in leaf j of a tree

This is a method of this benchmark. The nearest published forests alternate fitting and relabelling (Shi et al. 2018).

- Each tree is fitted to a bootstrap sample of the bags. Each leaf considers half of the features.
- Numbers are divided into 16 quantile bins. A split of a categorical feature separates one category from the others.

The noise of bag k has variance v / m_k, with v = prior (1 - prior), and theta_j ~ N(prior, v / rho). So leaf values
come from ridge regression on bags, not from averages of rows. A split adds a column h to H: the fraction of each bag's
rows that go to its left side. The chosen split maximises

    gain = (h'e)^2 / (h'h - projection of h on the present columns + rho),

summed over classes, where e is the residual of the current fit. Columns and targets are multiplied by sqrt(m_k), and
targets are divided by sqrt(v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, FloatArray, IntArray, Rows, Schema, register_method
from llpbench.blocks.design import FeatureBins, RowBins, as_proba
from llpbench.core.bags import BoolArray

_BINS, _CATEGORIES = 16, 40


@dataclass(frozen=True)
class _BagForestParams(DirectParams):
    trees: Annotated[int, Choice(50, 100, 200)] = 100
    """number of trees"""
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    """largest number of leaves of a tree"""
    rho: Annotated[float, Choice(0.1, 0.3, 1.0, 3.0)] = 1.0
    """prior precision of leaf values; 1 counts as much as one row"""


class _TreeSplit(NamedTuple):
    """The split of a leaf."""

    leaf: int
    feature: int
    left: BoolArray
    """[bins] whether a bin stays in the leaf; the other bins go to a new leaf"""

    def apply(self, leaf: IntArray, codes: IntArray, new: int) -> None:
        """Move rows on the right side to leaf `new`, in place. `leaf` [rows], `codes` [features, rows]."""
        leaf[(leaf == self.leaf) & ~self.left[codes[self.feature]]] = new


@dataclass(frozen=True, eq=False)
class _BagTree:
    """A partition of rows, with a prediction for each leaf."""

    splits: list[_TreeSplit]
    """in their order; the right side of each becomes a new leaf with the next number"""
    values: FloatArray
    """[leaves, outputs]"""

    def __call__(self, codes: IntArray) -> FloatArray:
        """Return predictions [rows, outputs] for binned rows [features, rows]."""
        leaf = np.zeros(codes.shape[1], dtype=np.int64)
        for new, split in enumerate(self.splits, start=1):
            split.apply(leaf, codes, new)
        return np.asarray(self.values[leaf])


@dataclass(frozen=True, eq=False)
class _BagTargets:
    """The bags that a tree is fitted to."""

    bag_of_row: IntArray
    sizes: IntArray
    root: FloatArray
    """[bags] inverse standard deviation of the noise, up to sqrt(v); 0 for excluded bags"""
    targets: FloatArray
    """[bags, outputs] (proportions - prior) / sqrt(v), not yet multiplied by `root`"""


@dataclass(frozen=True)
class _Growth:
    """Settings for growing trees."""

    leaves: int
    rho: float
    """prior precision of leaf values in units of 1 / v"""
    least: int = 20
    """smallest number of rows in a leaf"""
    features: float = 0.5
    """fraction of the features that are considered in each leaf"""


class _Candidates(NamedTuple):
    """Possible splits of one leaf."""

    columns: FloatArray
    """[bags, candidates] fraction of each bag's rows on the left side, times `root`"""
    feature: IntArray
    bin: IntArray
    """[candidates] last bin on the left side; for a categorical feature, the only one"""


def _grow_tree(
    codes: IntArray, features: list[FeatureBins], bags: _BagTargets, growth: _Growth, rng: np.random.Generator
) -> _BagTree:
    """Grow a tree, always by the best split, until it has enough leaves or no split has a gain."""
    leaf = np.zeros(codes.shape[1], dtype=np.int64)
    columns = _share(leaf, bags, 1)
    targets = bags.targets * bags.root[:, None]
    candidates = [_candidates(codes, features, bags, np.arange(len(leaf)), growth, rng)]
    splits: list[_TreeSplit] = []
    while True:
        inverse = np.linalg.inv(columns.T @ columns + growth.rho * np.eye(columns.shape[1]))
        fitted = inverse @ (columns.T @ targets)
        if columns.shape[1] == growth.leaves:
            break
        residual = targets - columns @ fitted
        gains = [_split_gains(each.columns, columns, inverse, residual, growth.rho) for each in candidates]
        best = [float(gain.max(initial=0.0)) for gain in gains]
        divided = int(np.argmax(best))
        if best[divided] <= 0:
            break
        chosen = int(gains[divided].argmax())
        feature, number = int(candidates[divided].feature[chosen]), int(candidates[divided].bin[chosen])
        bins = np.arange(features[feature].size)
        left = bins == number if features[feature].positions is None else bins <= number
        if not features[feature].weights[-1]:  # no row of training is in the last bin: new ones go with most rows
            left[-1] = 2 * np.count_nonzero(left[codes[feature, leaf == divided]]) > np.count_nonzero(leaf == divided)
        splits.append(_TreeSplit(divided, feature, left))
        new = len(splits)
        splits[-1].apply(leaf, codes, new)
        halves = [np.flatnonzero(leaf == each) for each in (divided, new)]
        columns = _share(leaf, bags, new + 1)
        candidates[divided] = _candidates(codes, features, bags, halves[0], growth, rng)
        candidates.append(_candidates(codes, features, bags, halves[1], growth, rng))
    return _BagTree(splits, fitted)


def _split_gains(
    added: FloatArray, columns: FloatArray, inverse: FloatArray, residual: FloatArray, rho: float
) -> FloatArray:
    """Return the gain [candidates] from adding each column of `added` to `columns`, given the ridge `inverse`."""
    crossed = columns.T @ added
    apart = (added**2).sum(axis=0) - (crossed * (inverse @ crossed)).sum(axis=0)
    return np.asarray(((added.T @ residual) ** 2).sum(axis=1) / (np.maximum(apart, 0.0) + rho))


def _share(leaf: IntArray, bags: _BagTargets, leaves: int) -> FloatArray:
    """Return the fraction of each bag's rows in each leaf, times `root` [bags, leaves]."""
    counts = np.bincount(bags.bag_of_row * leaves + leaf, minlength=len(bags.sizes) * leaves)
    return np.asarray(counts.reshape(-1, leaves) * (bags.root / bags.sizes)[:, None])


def _candidates(
    codes: IntArray,
    features: list[FeatureBins],
    bags: _BagTargets,
    rows: IntArray,
    growth: _Growth,
    rng: np.random.Generator,
) -> _Candidates:
    """Return all splits on a random subset of features that leave enough rows on both sides."""
    looked_at = rng.choice(len(features), int(np.ceil(growth.features * len(features))), replace=False)
    bag, scale = bags.bag_of_row[rows], (bags.root / bags.sizes)[:, None]
    columns, feature, number = [np.zeros((len(bags.sizes), 0))], [], []
    for place in sorted(looked_at.tolist()) if len(rows) >= 2 * growth.least else []:
        size = features[place].size
        counts = np.bincount(bag * size + codes[place, rows], minlength=len(bags.sizes) * size).reshape(-1, size)
        if features[place].positions is not None:
            counts = counts.cumsum(axis=1)[:, :-1]
        inside = counts.sum(axis=0)
        kept = np.flatnonzero((inside >= growth.least) & (len(rows) - inside >= growth.least))
        columns.append(counts[:, kept] * scale)
        feature += [place] * len(kept)
        number += kept.tolist()
    return _Candidates(np.hstack(columns), np.array(feature, dtype=np.int64), np.array(number, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Forest:
    """Mean prediction of the trees."""

    bins: RowBins
    trees: list[_BagTree]
    prior: FloatArray
    """[classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        codes, binary = self.bins(rows), len(self.prior) == 2
        outputs = np.zeros((codes.shape[1], 1 if binary else len(self.prior)))
        for tree in self.trees:
            outputs += tree(codes) / len(self.trees)
        deviation = np.sqrt(self.prior * (1 - self.prior))
        if binary:
            second = self.prior[1] + deviation[1] * outputs[:, 0]
            return as_proba(np.column_stack([1 - second, second]))
        return as_proba(self.prior + deviation * outputs)


@register_method("bag-forest", version=1, reference="after Shi et al. 2018", family="direct", extra=True)
class BagForest(DirectMethod):
    """Trees whose splits and leaves explain the proportions of bags."""

    Params = _BagForestParams
    params: _BagForestParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _Forest:
        """Grow one tree after the other, each on bags drawn with replacement."""
        bins = RowBins(train.rows, _BINS, _CATEGORIES)
        codes, prior, sizes = bins(train.rows), train.prior, train.sizes
        variance = prior * (1 - prior)
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        targets = (train.proportions - prior) / deviation
        targets = targets[:, 1:] if len(prior) == 2 else targets
        # variance of a bag's proportion: v / m for independent rows, plus the variance of the noise in its counts
        added = train.noise**2 / max(float(variance[variance > 0].mean() if variance.any() else 1.0), 1e-12)
        precision = 1 / (1 / sizes + added / sizes**2)
        growth = _Growth(leaves=self.params.leaves, rho=self.params.rho)
        trees = []
        for _ in range(self.params.trees):
            drawn = np.bincount(rng.integers(0, len(sizes), len(sizes)), minlength=len(sizes))
            bags = _BagTargets(train.bag_of_row, sizes, np.sqrt(drawn * precision), targets)
            trees.append(_grow_tree(codes, bins.features, bags, growth, rng))
        return _Forest(bins, trees, prior)

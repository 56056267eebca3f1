"""bag-forest: a random forest with splits and leaf values fitted to the proportions of bags.

    p̄ₖ = Σⱼ Hₖⱼ θⱼ + noise,  Hₖⱼ the fraction of bag k in leaf j;  f(x) = mean of θ over trees

This is a method of this benchmark. The nearest published forests alternate fitting and relabelling (Shi et al. 2018).

- The leaf values of a tree come from ridge regression. Its input is the fraction of each bag's rows in each leaf.
- Each split is the one that reduces the residual of this regression most (`blocks/bag_trees.py`).
- Each tree is fitted to a bootstrap sample of the bags. Each leaf considers half of the features.
- Numbers are divided into 16 quantile bins. A split of a categorical feature separates one category from the others.
- The prediction is the mean over trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.bag_trees import BagTargets, BagTree, Growth, grow_tree
from llpbench.blocks.binning import RowBins
from llpbench.blocks.design import as_proba
from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice
from llpbench.core.registry import register_method

_BINS, _CATEGORIES = 16, 40


@dataclass(frozen=True)
class _BagForestParams(DirectParams):
    """Hyperparameters."""

    trees: Annotated[int, Choice(50, 100, 200)] = 100
    """number of trees"""
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    """largest number of leaves of a tree"""
    rho: Annotated[float, Choice(0.1, 0.3, 1.0, 3.0)] = 1.0
    """prior precision of leaf values; 1 counts as much as one row"""


@dataclass(frozen=True, eq=False)
class Forest:
    """Mean prediction of the trees."""

    bins: RowBins
    trees: list[BagTree]
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

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Forest:
        """Grow one tree after the other, each on bags drawn with replacement."""
        train = train.where_known()
        bins = RowBins(train.rows, _BINS, _CATEGORIES)
        codes, prior, sizes = bins(train.rows), train.prior, train.sizes
        variance = prior * (1 - prior)
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        targets = (train.proportions - prior) / deviation
        targets = targets[:, 1:] if len(prior) == 2 else targets
        # variance of a bag's proportion: v / m for independent rows, plus the variance of the noise in its counts
        added = train.noise**2 / max(float(variance[variance > 0].mean() if variance.any() else 1.0), 1e-12)
        precision = 1 / (1 / sizes + added / sizes**2)
        growth = Growth(leaves=self.params.leaves, rho=self.params.rho)
        trees = []
        for _ in range(self.params.trees):
            drawn = np.bincount(rng.integers(0, len(sizes), len(sizes)), minlength=len(sizes))
            bags = BagTargets(train.bag_of_row, sizes, np.sqrt(drawn * precision), targets)
            trees.append(grow_tree(codes, bins.features, bags, growth, rng))
        return Forest(bins, trees, prior)

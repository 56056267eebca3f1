"""count-gbdt: boosted trees that maximise the likelihood of the counts of bags.

    max over F of Σₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ Bernoulli(sigmoid F(xᵢ))
    yᵢ: unknown class of row i

Rows are Bernoulli variables with p = sigmoid(F(x)), and a bag's count is their sum. The gradient of the negative log
likelihood with respect to F is p - q. Here q is the probability of a row's class given the count of its bag. At the
start, all rows of a bag have the same q, the bag's proportion. The first tree therefore fits proportions, like
`bag-soft-label-gbdt`. Later trees are steps of EM.

Maximum likelihood from aggregates: Zhang et al. 2020. Count loss: Shukla et al. 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import some_bags
from llpbench.blocks.trees import TreeProba, TreeRows, TreeSettings


@dataclass(frozen=True)
class _CountGBDTParams(DirectParams):
    trees: Annotated[int, Choice(100, 200, 400, 800)] = 800
    """number of trees"""
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    """largest number of leaves of a tree"""
    learning_rate: Annotated[float, LogUniform(0.02, 0.3)] = 0.1
    """learning rate"""
    penalty: Annotated[float, LogUniform(0.1, 100.0)] = 1.0
    """penalty on squared leaf values"""
    least: Annotated[float, LogUniform(1.0, 100.0)] = 5.0
    """smallest sum of p (1 - p) in a leaf"""


@register_method("count-gbdt", version=1, reference="after Zhang et al. 2020; Shukla et al. 2023")
class CountGBDT(DirectMethod):
    """Gradient boosting of the likelihood of the counts of bags."""

    Params = _CountGBDTParams
    params: _CountGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> TreeProba:
        """Start from the prior. Each step adds one tree per class, or a single one with two classes."""
        train = some_bags(train, rng)
        settings = TreeSettings(
            rounds=self.params.trees,
            leaves=self.params.leaves,
            learning_rate=self.params.learning_rate,
            penalty=self.params.penalty,
            least=self.params.least,
        )
        return TreeProba(TreeRows(train).boost_counts(settings, int(rng.integers(2**31))))

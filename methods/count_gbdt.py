"""count-gbdt: boosted trees on the likelihood of the counts of bags.

Rows are Bernoulli with p = sigmoid(F(x)), a bag's count is their sum, and trees climb its likelihood: the gradient by F
is p - q, q the probability of each row's class given its bag's count. The first tree is that of bag soft labels, later
ones are EM. Maximum likelihood from aggregates: Zhang et al. 2020; the count loss: Shukla et al. 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.count_trees import TreeProba, boost_counts
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class CountGBDTParams(DirectParams):
    """Hyperparameters."""

    trees: Annotated[int, Choice(100, 200, 400, 800)] = 800
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    learning_rate: Annotated[float, LogUniform(0.02, 0.3)] = 0.1
    penalty: Annotated[float, LogUniform(0.1, 100.0)] = 1.0
    """of squared leaf values"""
    least: Annotated[float, LogUniform(1.0, 100.0)] = 5.0
    """sum of p (1 - p) that a leaf needs"""


@register_method("count-gbdt", reference="after Zhang et al. 2020; Shukla et al. 2023")
class CountGBDT(DirectMethod):
    """Gradient boosting of the likelihood of the counts of bags."""

    Params = CountGBDTParams
    params: CountGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> TreeProba:
        """From the prior, one tree a class a step; of two classes one for both."""
        del schema
        train = train.where_known()
        settings = TreeSettings(
            rounds=self.params.trees,
            leaves=self.params.leaves,
            learning_rate=self.params.learning_rate,
            penalty=self.params.penalty,
            least=self.params.least,
        )
        logits = boost_counts(TreeRows(train.rows), BagCounts(train), train.prior, settings, rng)
        return TreeProba(logits)

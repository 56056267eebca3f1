"""em-gbdt: boosted trees fitted in rounds to class probabilities of rows that add up to the counts of bags.

    qᵢ = softmax( F(xᵢ) + shift of the bag ), which add up to nₖ;  fit F to q by cross-entropy;  repeat
    qᵢ: targets of row i;  F starts as the logits of `bag-gp`, so both share failures

Each round of EM has two steps. First the logits of each bag are shifted until its predictions add up to its counts.
A bag without rows of a class counts as having half a row of it, at most a hundredth of the bag. Then trees are fitted
to these posteriors by cross-entropy. The next round shifts the logits of these trees.

The result depends on the start. By default this is the posterior of `bag-gp`: the method keeps its information and adds
interactions. With `start=soft-labels`, the first targets are the bags' proportions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.components import ProcessSettings
from llpbench.blocks.design import some_bags
from llpbench.blocks.trees import TreeProba, TreeRows, TreeSettings


@dataclass(frozen=True)
class _EMGBDTParams(DirectParams):
    start: Annotated[str, Choice("bag-gp", "soft-labels")] = "bag-gp"
    """source of the first posteriors"""
    rounds: Annotated[int, Choice(1, 2, 4, 10)] = 4
    """rounds of EM"""
    trees: Annotated[int, Choice(50, 100, 200)] = 100
    """number of trees in a round"""
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    """largest number of leaves of a tree"""
    learning_rate: Annotated[float, LogUniform(0.02, 0.3)] = 0.1
    """learning rate"""


@register_method("em-gbdt", version=1, reference="after Dempster et al. 1977; Zhang et al. 2020")
class EMGBDT(DirectMethod):
    """Boosted trees refitted to posteriors of rows given the counts of bags, starting from bag-gp."""

    Params = _EMGBDTParams
    params: _EMGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> TreeProba:
        """Alternate the two steps of EM."""
        train = some_bags(train, rng)
        if self.params.start == "bag-gp":
            start = LogitProcess.of(train, ProcessSettings(), rng)()
        else:
            start = np.zeros((len(train.rows.numeric), schema.classes))
        settings = TreeSettings(
            rounds=self.params.trees, leaves=self.params.leaves, learning_rate=self.params.learning_rate
        )
        seeds = rng.integers(2**31, size=self.params.rounds).tolist()
        return TreeProba(TreeRows(train).boost_posteriors(start, settings, seeds))

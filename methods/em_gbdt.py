"""em-gbdt: boosted trees fitted again and again to what counts and their own predictions say of each row.

Per bag a shift of the logits makes the predictions add up to its counts; trees are fitted to these posteriors by
cross-entropy, and their logits are the next ones to shift. What it starts from decides where it ends: from the
posterior of `bag-gp` it keeps what that knows and adds interactions; from nothing, its first targets are the bags'
proportions as soft labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.bag_logits import fit_logits
from llpbench.blocks.bag_process import ProcessSettings, fit_wary
from llpbench.blocks.count_trees import TreeProba, boost_posteriors
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class EMGBDTParams(DirectParams):
    """Hyperparameters."""

    start: Annotated[str, Choice("bag-gp", "soft-labels")] = "bag-gp"
    """where the first posteriors come from"""
    rounds: Annotated[int, Choice(1, 2, 4, 10)] = 4
    """of refitting"""
    trees: Annotated[int, Choice(50, 100, 200)] = 100
    leaves: Annotated[int, Choice(4, 8, 16)] = 8
    learning_rate: Annotated[float, LogUniform(0.02, 0.3)] = 0.1


@register_method("em-gbdt", reference="after Dempster et al. 1977; Zhang et al. 2020")
class EMGBDT(DirectMethod):
    """Gradient boosting refitted to the posteriors of rows given their bags' counts, from bag-gp's."""

    Params = EMGBDTParams
    params: EMGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> TreeProba:
        """Expectation and maximisation in turn."""
        train = train.where_known()
        if self.params.start == "bag-gp":
            start = fit_logits(fit_wary(train, ProcessSettings(), rng), train)()
        else:
            start = np.zeros((len(train.rows.numeric), schema.classes))
        settings = TreeSettings(
            rounds=self.params.trees, leaves=self.params.leaves, learning_rate=self.params.learning_rate
        )
        data, counts = TreeRows(train.rows), BagCounts(train)
        logits = boost_posteriors(data, counts, start, settings, self.params.rounds, rng)
        return TreeProba(logits)

"""bag-gp-gbdt: the union of a Gaussian process on bags and boosted trees on counts.

The prediction is the softmax of the mean of three logits, with equal weights. All three use only bags:

- `bag-gp` has the strongest prior and leads with few bags.
- `em-gbdt` starts from its posterior and adds interactions.
- `count-gbdt` uses neither and makes different errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import log_softmax, softmax

from llpbench.blocks.bag_logits import LogitProcess, fit_logits
from llpbench.blocks.bag_process import ProcessSettings, fit_wary
from llpbench.blocks.count_trees import TreeLogits, boost_counts, boost_posteriors
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.effects import FeatureEffect
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice
from llpbench.core.registry import register_method


@dataclass(frozen=True, eq=False)
class UnionPredictor:
    """The softmax of the mean of three logits."""

    process: LogitProcess
    refitted: TreeLogits
    counted: TreeLogits

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        members = (self.process(rows), self.refitted(rows), self.counted(rows))
        logits = sum(1 / 3 * log_softmax(each, axis=1) for each in members)
        return np.asarray(softmax(logits, axis=1))

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Return the effects of the process, the only member with a posterior."""
        return self.process.effects(label)


@dataclass(frozen=True)
class BagGPGBDTParams(DirectParams):
    """Hyperparameters. The members use their defaults for all others."""

    trees: Annotated[int, Choice(200, 400, 800)] = 800
    """trees of the member on counts"""
    rounds: Annotated[int, Choice(2, 4, 10)] = 4
    """rounds of the member that starts from the process"""


@register_method("bag-gp-gbdt", reference="this benchmark")
class BagGPGBDT(DirectMethod):
    """Union of bag-gp, em-gbdt and count-gbdt: the mean of their logits."""

    Params = BagGPGBDTParams
    params: BagGPGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> UnionPredictor:
        """Fit the process, then trees from its posterior, then trees from the prior."""
        del schema
        train = train.where_known()
        process = fit_logits(fit_wary(train, ProcessSettings(), rng), train)
        data, counts = TreeRows(train.rows), BagCounts(train)
        refitted = boost_posteriors(data, counts, process(), TreeSettings(100), self.params.rounds, rng)
        counted = boost_counts(data, counts, train.prior, TreeSettings(self.params.trees), rng)
        return UnionPredictor(process, refitted, counted)

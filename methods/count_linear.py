"""count-linear: logistic regression by the counts of bags.

Rows are independent with P = softmax(W x + b), and W is fitted to bags alone. `loss=count` is the likelihood of their
counts: their sum is normal with its own variance (Rosenman & Viswanathan 2018), and exact in small bags (Sun, Sheldon &
O'Connor 2017, who find it by EM with cardinality potentials; here by its gradient). `kl` is the linear DLLP. `absolute`
and `insensitive` are empirical proportion risk minimisation (Yu et al. 2014), with rounded corners for L-BFGS. None is
convex: the penalty falls from a hundredfold, and each fit starts from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.bag_losses import BAG_LOSSES, fit_bags
from llpbench.blocks.linear import FEATURES, LinearColumns, LogitPredictor
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class CountLinearParams(DirectParams):
    """Hyperparameters."""

    features: Annotated[str, FEATURES] = "scores+bins"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    loss: Annotated[str, BAG_LOSSES] = "count"
    """of bags; all but count are weighted by their sizes"""
    strength: Annotated[float, LogUniform(0.1, 1000.0)] = 10.0
    """of the L2 penalty"""


@register_method("count-linear", reference="after Rosenman & Viswanathan 2018", family="direct", extra=True)
class CountLinear(DirectMethod):
    """Logistic regression fitted to the counts of bags."""

    Params = CountLinearParams
    params: CountLinearParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LogitPredictor:
        """Three fits of L-BFGS, the penalty falling."""
        del rng
        train = train.where_known()
        columns = LinearColumns(self.params.features, train.rows, schema)
        return LogitPredictor(columns, fit_bags(columns(train.rows), train, self.params.loss, self.params.strength))

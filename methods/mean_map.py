"""mean-map: class means from bag means, then the logistic regression that they determine.

Quadrianto, Smola, Caetano & Le 2009. Labels enter the likelihood of an exponential family only through class means, and
a bag's mean is their mixture by its proportions: M = (P'DP + kappa C)^-1 P'D (bag means), then the least of sum_i
log sum_c exp f_ic - N sum_c pi_c (w_c . M_c + b_c) + strength/2 |w|^2. It assumes that rows of one class are alike in
all bags, which ordered bags are not.

Where it differs: D has the sizes of bags (published: equal weights), since the variance of a bag's mean falls with its
size; a pseudo-inverse and `shrinkage` kappa hold class means together where bags are nearly equal; the penalty is part
of the objective (LLP-Bench's code declares it and leaves it out), and the intercept has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.linear import FEATURES, LinearColumns, LogitPredictor
from llpbench.blocks.mean_operator import logistic_of_means, mean_operator
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class MeanMapParams(DirectParams):
    """Hyperparameters."""

    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """of the L2 penalty, beside a sum over rows"""
    shrinkage: Annotated[float, Choice(0.0, 0.01, 0.1, 1.0)] = 0.0
    """of class means towards the common mean"""


@register_method("mean-map", reference="Quadrianto et al. 2009", family="classical", extra=True)
class MeanMap(DirectMethod):
    """Logistic regression from class means that explain the means of bags."""

    Params = MeanMapParams
    params: MeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LogitPredictor:
        """A small linear system, then a convex problem."""
        del rng
        train = train.where_known()
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        operator = mean_operator(train, columns, self.params.shrinkage)
        return LogitPredictor(design, logistic_of_means(columns, operator, self.params.strength)[1])

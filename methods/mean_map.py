"""mean-map: estimate class means from bag means, then fit logistic regression to these class means.

    M = (ΠᵀDΠ)⁻¹ ΠᵀD (bag means);  min of Σᵢ log Σ_c exp sᵢc − N Σ_c π_c s_c(M_c) + ½ strength ‖w‖²
    M: means of classes;  Π, D: proportions and sizes of bags;  sᵢc: score of class c;  N: number of rows

Quadrianto, Smola, Caetano & Le 2009. The likelihood of an exponential family depends on labels only through class
means. A bag's mean is their mixture by its proportions P, so M = (P'DP + kappa C)^-1 P'D (bag means). The fit
assumes that a class has the same mean in all bags. This does not hold in ordered bags. Differences from the paper:

- D contains the sizes of bags instead of equal weights, since the variance of a bag's mean falls with its size.
- A pseudo-inverse and `shrinkage` kappa stabilise class means if proportions are nearly equal in all bags.
- The penalty is part of the objective and excludes the intercept. LLP-Bench's code declares it but omits it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import FEATURES, LinearColumns
from llpbench.blocks.linear import LinearPredictor, MeanOperator


@dataclass(frozen=True)
class _MeanMapParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """strength of the L2 penalty, relative to a loss summed over rows"""
    shrinkage: Annotated[float, Choice(0.0, 0.01, 0.1, 1.0)] = 0.0
    """strength of shrinking class means to the common mean"""


@register_method("mean-map", version=1, reference="Quadrianto et al. 2009", family="classical", extra=True)
class MeanMap(DirectMethod):
    """Logistic regression from class means that explain the means of bags."""

    Params = _MeanMapParams
    params: _MeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Solve a small linear system, then a convex problem."""
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        operator = MeanOperator.of_bags(train, columns, self.params.shrinkage)
        return LinearPredictor(design, operator.logistic(columns, self.params.strength)[1])

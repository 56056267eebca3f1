"""laplacian-mean-map: mean-map with class means of each bag, smooth over bags that are alike.

Patrini, Nock, Rivera & Caetano 2014 (LMM). Bag k has class means B_kc of its own, M_k = sum_c p_kc B_kc, and bags with
near means have near class means. They minimise sum_k (m_k / mean size) |M_k - sum_c p_kc B_kc|^2 + gamma sum_c
tr(B_c' L B_c). Logistic regression follows from sum_k (m_k / N) p_kc B_kc, as in mean-map.

Where it differs from the authors' code: bags weigh by their sizes (there: alike); similarity falls with the distance
over the median distance (there: over 1); more than two classes are as many blocks; a ridge of
1e-8 holds what proportions leave open; from 2,000 bags of two classes on, only the ten nearest are linked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.linear import FEATURES, LinearColumns, LogitPredictor
from llpbench.blocks.mean_operator import laplacian_operator, logistic_of_means
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class LaplacianMeanMapParams(DirectParams):
    """Hyperparameters."""

    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """of the L2 penalty, beside a sum over rows"""
    smoothness: Annotated[float, LogUniform(1e-3, 10.0)] = 0.01
    """of class means over bags, gamma in the paper"""


@register_method("laplacian-mean-map", reference="Patrini et al. 2014", family="classical", extra=True)
class LaplacianMeanMap(DirectMethod):
    """Logistic regression from class means of each bag, smooth over similar bags."""

    Params = LaplacianMeanMapParams
    params: LaplacianMeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LogitPredictor:
        """A linear system over bags, then a convex problem."""
        del rng
        train = train.where_known()
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        operator = laplacian_operator(train, columns, self.params.smoothness)
        return LogitPredictor(design, logistic_of_means(columns, operator, self.params.strength)[1])

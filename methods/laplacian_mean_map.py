"""laplacian-mean-map: mean-map with separate class means for each bag, which are similar in similar bags.

    min over B of Σₖ (mₖ / mean m) ‖ meanᵢ xᵢ − Σ_c p̄ₖc Bₖc ‖² + γ Σ_c tr( B_cᵀ Λ B_c );  then as mean-map
    Bₖc: mean of class c in bag k;  Λ: Laplacian of the similarities of bags;  γ: `smoothness`

Patrini, Nock, Rivera & Caetano 2014 (LMM). Bag k has its own class means B_kc, and Λ is the Laplacian of the
similarities of bag means. Logistic regression follows from sum_k (m_k / N) p_kc B_kc, as in mean-map.

Differences from the authors' code:

- Bags are weighted by their sizes instead of equally.
- Similarity decreases with the distance divided by the median distance. The authors use the distance itself.
- With more than two classes, the system has a block per class.
- A ridge of 1e-8 determines directions that proportions leave open.
- With more than 2,000 bags (and two classes), a bag is linked only to its ten nearest bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import FEATURES, LinearColumns
from llpbench.blocks.linear import LinearPredictor, MeanOperator


@dataclass(frozen=True)
class _LaplacianMeanMapParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """strength of the L2 penalty, relative to a loss summed over rows"""
    smoothness: Annotated[float, LogUniform(1e-3, 10.0)] = 0.01
    """smoothness of class means over bags, gamma in the paper"""


@register_method("laplacian-mean-map", version=1, reference="Patrini et al. 2014", family="classical", extra=True)
class LaplacianMeanMap(DirectMethod):
    """Logistic regression from the class means of each bag, which are similar in similar bags."""

    Params = _LaplacianMeanMapParams
    params: _LaplacianMeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Solve a linear system over bags, then a convex problem."""
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        operator = MeanOperator.smooth_over_bags(train, columns, self.params.smoothness)
        return LinearPredictor(design, operator.logistic(columns, self.params.strength)[1])

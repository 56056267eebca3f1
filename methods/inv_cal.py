"""inv-cal: support vector regression of the logits of bag proportions on bag means.

    min of ½ ‖w‖² + C Σₖ max( 0, | w · meanᵢ xᵢ + b − logit p̄ₖ | − εₖ ),  εₖ = ε / ( p̄ₖ (1 − p̄ₖ) )
    C, ε: hyperparameters `cost`, `epsilon`;  b: intercept

Rueping 2010. A bag is one example, its mean M_k. Its target is y_k = log(p_k / (1 - p_k)), with p_k clipped to
[1/N, 1 - 1/N], and its tolerance is eps_k = epsilon / (p_k (1 - p_k)). The logit of a row is w . x + b.

Avoid large tolerances: with epsilon = 0.1, the same logit for all rows is within the tolerance of all random bags.
A bag of one class has a tolerance of about epsilon * N logits, so with `clip=rows` it hardly counts.

Differences from the paper:

- The paper solves the dual with kernels, by an external solver. Here features are linear, and L-BFGS solves the primal,
  with corners rounded by a thousandth.
- `clip=bag` clips at half a row of the bag, for bags of unequal sizes.
- With more than two classes, each class is fitted against the rest, followed by the softmax of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, FloatArray, LogUniform, Schema, register_method
from llpbench.blocks.design import FEATURES, LinearColumns, bag_average
from llpbench.blocks.linear import LinearPredictor, LogitWeights, hinge, outputs

_CORNERS = (1.0, 0.1, 0.01, 0.001)
"""widths of rounded corners; each fit starts from the previous one"""


@dataclass(frozen=True)
class _InvCalParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    cost: Annotated[float, LogUniform(0.01, 100.0)] = 1.0
    """cost of a bag outside its tolerance, C in the paper"""
    epsilon: Annotated[float, Choice(0.0, 0.01, 0.1)] = 0.01
    """tolerance of a proportion"""
    clip: Annotated[str, Choice("rows", "bag")] = "rows"
    """what replaces proportions of 0 and 1: one row of all rows, or half a row of the bag"""


@register_method("inv-cal", version=1, reference="Rueping 2010", family="classical", extra=True)
class InvCal(DirectMethod):
    """Support vector regression of logits of proportions on bag means."""

    Params = _InvCalParams
    params: _InvCalParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Fit one example per bag and one regression per class, or a single regression with two classes."""
        columns = LinearColumns(self.params.features, train.rows, schema)
        means = sparse.csr_array(bag_average(train) @ columns(train.rows))
        edge = 1 / train.sizes.sum() if self.params.clip == "rows" else np.minimum(0.5 / train.sizes[:, None], 0.25)
        shares = train.proportions[:, -outputs(schema.classes) :].clip(edge, 1 - edge)
        fits = [_calibrated(means, p, self.params.cost, self.params.epsilon) for p in shares.T]
        coefficients = np.hstack([fit.coefficients for fit in fits])
        return LinearPredictor(columns, LogitWeights(coefficients, np.concatenate([fit.intercept for fit in fits])))


def _calibrated(means: sparse.csr_array, shares: FloatArray, cost: float, epsilon: float) -> LogitWeights:
    """Fit one logit to bag means [bags, columns] with proportions `shares` [bags], none of them 0 or 1."""
    targets, tolerances = np.log(shares / (1 - shares)), epsilon / (shares * (1 - shares))
    transposed = sparse.csr_array(means.T)
    weights = LogitWeights(np.zeros((means.shape[1], 1)), np.array([np.median(targets)]))
    for corner in _CORNERS:

        def objective(weights: LogitWeights, corner: float = corner) -> tuple[float, LogitWeights]:
            residual = weights(means)[:, 0] - targets
            above, by_above = hinge(residual - tolerances, corner)
            below, by_below = hinge(-residual - tolerances, corner)
            slope = cost * (by_above - by_below)
            value = (weights.coefficients**2).sum() / 2 + cost * (above + below).sum()
            gradient = LogitWeights(weights.coefficients + (transposed @ slope)[:, None], np.array([slope.sum()]))
            return float(value), gradient

        weights = weights.minimise(objective)[1]
    return weights

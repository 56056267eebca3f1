"""count-linear: logistic regression that maximises the likelihood of the counts of bags.

    max over W of Σₖ log P( Σᵢ yᵢ = nₖ ) − ½ strength ‖W‖²,  yᵢ ~ softmax(W xᵢ + b)
    b: intercept

Rows are independent with P = softmax(W x + b). W is fitted to bags alone. `loss` is one of:

- `count`: the likelihood of the counts. It is exact in small bags (Sun, Sheldon & O'Connor 2017, by EM instead of a
  gradient). In others, counts are normal, with the variance that predictions imply (Rosenman & Viswanathan 2018).
- `kl`: the loss of `dllp`, with bags weighted by size. `square`: the squared distance from proportions, also weighted.
- `absolute`, `insensitive`: empirical proportion risk minimisation (Yu et al. 2014), with rounded corners for L-BFGS.

No loss is convex. The model is therefore fitted three times, with a decreasing penalty that starts at a hundred times
its value. Each fit starts from the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import FEATURES, LinearColumns
from llpbench.blocks.linear import BAG_LOSSES, LinearPredictor, fit_bags


@dataclass(frozen=True)
class _CountLinearParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores+bins"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    loss: Annotated[str, BAG_LOSSES] = "count"
    """loss of bags; all except `count` weight bags by their sizes"""
    strength: Annotated[float, LogUniform(0.1, 1000.0)] = 10.0
    """strength of the L2 penalty"""


@register_method("count-linear", version=1, reference="after Rosenman & Viswanathan 2018", family="direct", extra=True)
class CountLinear(DirectMethod):
    """Logistic regression fitted to the counts of bags."""

    Params = _CountLinearParams
    params: _CountLinearParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Fit three times by L-BFGS, with a decreasing penalty."""
        columns = LinearColumns(self.params.features, train.rows, schema)
        return LinearPredictor(columns, fit_bags(columns(train.rows), train, self.params.loss, self.params.strength))

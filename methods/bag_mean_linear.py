"""bag-mean-linear: ridge regression of bag proportions on the mean features of bags.

    min over β of Σₖ (mₖ / mean m) ‖ p̄ₖ − β · meanᵢ xᵢ ‖² + strength ‖β‖²,  f(x) = β · x

This is the oldest method of the field (ecological regression, Goodman 1953) and still a strong one. It assumes that a
relation between bags also holds between rows. Values of f below 0.05 or above 0.95 are bent into [0, 1] (`as_proba`),
so the probabilities of rare classes are too high.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import OneHot, bag_average
from llpbench.blocks.linear import LinearPredictor, linear_fit


@dataclass(frozen=True)
class _BagMeanLinearParams(DirectParams):
    model: Annotated[str, Choice("ridge", "logistic")] = "ridge"
    """regression of proportions on bag means"""
    strength: Annotated[float, LogUniform(1e-2, 1e3)] = 1.0
    """strength of the L2 penalty"""


@register_method("bag-mean-linear", version=1, reference="Goodman 1953", family="classical")
class BagMeanLinear(DirectMethod):
    """Linear regression of bag proportions on bag means, applied to single rows."""

    Params = _BagMeanLinearParams
    params: _BagMeanLinearParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Fit one example per bag, weighted by its size relative to the mean size."""
        design = OneHot(train.rows, schema)
        means = bag_average(train) @ design(train.rows)
        weights = train.sizes / train.sizes.mean()
        shares = linear_fit(self.params.model, means, train.proportions, weights, self.params.strength)
        return LinearPredictor(design, shares)

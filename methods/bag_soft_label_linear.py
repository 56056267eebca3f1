"""Bag soft labels with a linear model: every row gets the proportions of its bag as target.

    min over β of Σᵢ ‖ p̄ of i's bag − β · xᵢ ‖² + strength ‖β‖²,  f(x) = β · x

With `model=logistic` the loss is cross-entropy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.design import OneHot
from llpbench.blocks.linear import LinearPredictor, linear_fit


@dataclass(frozen=True)
class _BagSoftLabelLinearParams(DirectParams):
    model: Annotated[str, Choice("ridge", "logistic")] = "ridge"
    """regression of soft labels on rows"""
    strength: Annotated[float, LogUniform(1e-1, 1e4)] = 100.0
    """strength of the L2 penalty"""


@register_method("bag-soft-label-linear", version=1, reference="after Musicant et al. 2007", family="classical")
class BagSoftLabelLinear(DirectMethod):
    """Linear regression on rows with their bag's proportions as labels."""

    Params = _BagSoftLabelLinearParams
    params: _BagSoftLabelLinearParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Fit one example per row."""
        design = OneHot(train.rows, schema)
        targets, weights = train.proportions[train.bag_of_row], np.ones(len(train.bag_of_row))
        shares = linear_fit(self.params.model, design(train.rows), targets, weights, self.params.strength)
        return LinearPredictor(design, shares)

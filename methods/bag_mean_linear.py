"""A linear model of bags: their mean features against their proportions.

The oldest idea in the field (ecological regression, Goodman 1953) and far from the weakest. It rests
on one thing: what holds between bags holds between rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench.blocks.design import LinearPredictor, OneHot, bag_average, linear_fit
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method


@dataclass(frozen=True)
class BagMeanLinearParams(DirectParams):
    """Hyperparameters."""

    model: Annotated[str, Choice("ridge", "logistic")] = "ridge"
    """regression on bag means and proportions"""
    strength: Annotated[float, LogUniform(1e-2, 1e3)] = 1.0
    """of the L2 penalty"""


@register_method("bag-mean-linear", reference="Goodman 1953")
class BagMeanLinear(DirectMethod):
    """Linear regression of bag proportions on bag means, applied to single rows."""

    Params = BagMeanLinearParams
    params: BagMeanLinearParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """One example a bag, weighted by its size relative to the mean size."""
        del rng
        train = train.where_known()
        design = OneHot(train.rows, schema)
        means = bag_average(train) @ design(train.rows)
        weights = train.sizes / train.sizes.mean()
        shares = linear_fit(self.params.model, means, train.proportions, weights, self.params.strength)
        return LinearPredictor(design, shares)

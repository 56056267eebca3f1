"""bag-share: the share of a row's bag, without its features.

If the bag is unknown, the prediction is the prior. Its AUC is then 50, and its log loss is that of no information. If
the bag of a test row is a training bag, the prediction is that bag's share. This trivial predictor is hard to beat on
natural bags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.method import DirectMethod
from llpbench.core.registry import register_method


@dataclass(frozen=True, eq=False)
class PriorPredictor:
    """Prior class probabilities, the same for every row."""

    prior: FloatArray
    """[classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        return np.broadcast_to(self.prior, (len(rows.numeric), len(self.prior))).copy()


@register_method("bag-share", role="floor")
class BagShare(DirectMethod):
    """The prior for every row, or the share of its bag if the bag is known."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> PriorPredictor:
        """Take the share of each class in all counts."""
        del schema, rng
        return PriorPredictor(train.prior)

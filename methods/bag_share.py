"""Its bag's share: knows nothing of a row but the bag that it is in.

Of a row whose bag is not known it says the prior, so its AUC is 50, and its log loss that of knowing nothing. Where the
bag of a test row is one of the training bags, it says that bag's share: the trivial predictor, and on natural bags one
that is hard to beat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.method import DirectMethod
from llpbench.core.registry import register_method


@dataclass(frozen=True, eq=False)
class PriorPredictor:
    """The same for every row."""

    prior: FloatArray
    """[classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        return np.broadcast_to(self.prior, (len(rows.numeric), len(self.prior))).copy()


@register_method("bag-share", role="floor")
class BagShare(DirectMethod):
    """The prior for every row; moved to its bag's share where the bag is known."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> PriorPredictor:
        """The share of each class in all counts."""
        del schema, rng
        return PriorPredictor(train.prior)

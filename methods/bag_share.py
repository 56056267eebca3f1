"""bag-share: predict the proportions of a row's bag and ignore its features.

    f(x) = p̄ₖ for a row of training bag k, otherwise π

This is a floor: a method that every other should beat. A row of an unknown bag gets the prior. AUC is then 50, and the
log loss is that of always predicting the prior. A row of a training bag gets the proportions of this bag. On natural
bags this trivial prediction is hard to beat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench import BaggedRows, DirectMethod, FloatArray, Rows, Schema, register_method


@dataclass(frozen=True, eq=False)
class _PriorPredictor:
    """Prior class probabilities, the same for every row."""

    prior: FloatArray
    """[classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.broadcast_to(self.prior, (len(rows.numeric), len(self.prior))).copy()


@register_method("bag-share", version=1, role="floor")
class BagShare(DirectMethod):
    """The proportions of a row's bag, or the prior if the bag is unknown."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _PriorPredictor:
        """Compute the proportion of each class in all counts."""
        return _PriorPredictor(train.prior)

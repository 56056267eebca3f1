"""Its bag's share: knows nothing of a row but the bag that it is in.

Of a row whose bag is not known it says the prior, so its AUC is 50, and its log loss that of knowing nothing. Where the
bag of a test row is one of the training bags, it says that bag's share: the trivial predictor, and on natural bags one
that is hard to beat.
"""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.method import DirectMethod, Predictor
from llpbench.core.registry import register_method


@register_method("bag-share", role="floor")
class BagShare(DirectMethod):
    """The prior for every row; moved to its bag's share where the bag is known."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        """The share of each class in all counts."""
        del schema, rng
        prior = train.prior

        def predict(rows: Rows) -> FloatArray:
            return np.broadcast_to(prior, (len(rows.numeric), len(prior))).copy()

        return predict

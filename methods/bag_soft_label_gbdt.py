"""Bag soft labels with small gradient-boosted trees: every row gets the proportions of its bag as target.

    min over v of Σᵢ ‖ p̄ of i's bag − v(xᵢ) ‖²,  v gradient-boosted trees

Scores below 0.05 or above 0.95 approach 0 or 1 exponentially. Then they are normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, DirectMethod, DirectParams, FloatArray, Predictor, Rows, Schema, register_method
from llpbench.blocks.design import BoostingRows, as_proba
from llpbench.core.ranges import Choice, LogUniform


@dataclass(frozen=True)
class _BagSoftLabelGBDTParams(DirectParams):
    """Hyperparameters. Trees are small because larger ones learn the bags instead of the classes."""

    trees: Annotated[int, Choice(25, 50, 100, 200)] = 50
    """number of trees"""
    leaves: Annotated[int, Choice(4, 8, 16, 31)] = 4
    """largest number of leaves of a tree"""
    learning_rate: Annotated[float, LogUniform(0.01, 0.3)] = 0.05
    """learning rate"""


@register_method("bag-soft-label-gbdt", version=1, reference="after Musicant et al. 2007")
class BagSoftLabelGBDT(DirectMethod):
    """Small gradient-boosted trees on rows with their bag's proportions as labels."""

    Params = _BagSoftLabelGBDTParams
    params: _BagSoftLabelGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        """Fit one squared-error regression per class, or a single one with two classes."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        rows_of = BoostingRows(train.rows)
        features, targets = rows_of(train.rows), train.proportions[train.bag_of_row]
        models = [
            HistGradientBoostingRegressor(
                max_iter=self.params.trees,
                max_leaf_nodes=self.params.leaves,
                learning_rate=self.params.learning_rate,
                early_stopping=False,
                categorical_features=rows_of.categorical,
                random_state=int(rng.integers(2**31)),
            ).fit(features, targets[:, c])
            for c in range(1 if schema.classes == 2 else 0, schema.classes)
        ]

        def predict(rows: Rows) -> FloatArray:
            scores = np.column_stack([model.predict(rows_of(rows)) for model in models])
            return as_proba(np.column_stack([1 - scores, scores]) if schema.classes == 2 else scores)

        return predict

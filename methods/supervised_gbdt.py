"""Supervised gradient-boosted trees: a second ceiling, trained on the label of every row.

    L = −Σᵢ log softmax( F(xᵢ) )_c,  c the label of row i,  F gradient-boosted trees

With labels, boosted trees are the usual choice for tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from llpbench import BaggedRows, DirectMethod, DirectParams, Predictor, Schema, register_method
from llpbench.blocks.design import BoostingRows, proba_of
from llpbench.core.ranges import Choice, LogUniform


@dataclass(frozen=True)
class _SupervisedGBDTParams(DirectParams):
    """Hyperparameters. Defaults are those of scikit-learn."""

    trees: Annotated[int, Choice(50, 100, 200, 400)] = 100
    """number of trees"""
    leaves: Annotated[int, Choice(8, 16, 31, 63)] = 31
    """largest number of leaves of a tree"""
    learning_rate: Annotated[float, LogUniform(0.01, 0.3)] = 0.1
    """learning rate"""


@register_method("supervised-gbdt", version=1, role="ceiling")
class SupervisedGBDT(DirectMethod):
    """Gradient-boosted trees on the label of every training row."""

    Params = _SupervisedGBDTParams
    params: _SupervisedGBDTParams
    supervision = "instances"

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        """Fit to the proportions of bags of one row, which are the labels."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        rows_of = BoostingRows(train.rows)
        model = HistGradientBoostingClassifier(
            max_iter=self.params.trees,
            max_leaf_nodes=self.params.leaves,
            learning_rate=self.params.learning_rate,
            # without it the boosting diverges if a class has few rows: AUC 56 on avila and 64 on shuttle
            l2_regularization=1.0 if schema.classes > 2 else 0.0,
            early_stopping=False,
            categorical_features=rows_of.categorical,
            random_state=int(rng.integers(2**31)),
        ).fit(rows_of(train.rows), train.proportions[train.bag_of_row].argmax(axis=1))

        return lambda rows: proba_of(model, rows_of(rows), schema.classes)

"""Validation labels: a control, boosted trees on nothing but the labels that choose the epochs of networks.

Fine-grained validation needs the labels of a tenth of all rows. This control shows what these labels are worth without
any bag. It is fitted on the validation rows alone, with one fixed setting; codes of categories are used as numbers,
because few rows are not enough to split large categories. A method that chooses its epoch by these
labels should be better than the control: otherwise the bags add nothing.
"""

from __future__ import annotations

import numpy as np

from llpbench import BaggedRows, DirectMethod, FloatArray, Predictor, Rows, Schema, register_method
from llpbench.blocks.design import proba_of


@register_method("validation-labels", version=1, role="control")
class ValidationLabels(DirectMethod):
    """Gradient-boosted trees on the labels of the validation rows, without bags."""

    supervision = "validation"

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        """Fit to the proportions of bags of one row, which are the labels of the validation rows."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=100,
            learning_rate=0.05,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=int(rng.integers(2**31)),
        ).fit(_features(train.rows), train.proportions[train.bag_of_row].argmax(axis=1))

        return lambda rows: proba_of(model, _features(rows), schema.classes)


def _features(rows: Rows) -> FloatArray:
    """Return numbers and codes of categories [rows, features]."""
    return np.column_stack([rows.numeric, rows.categorical])

"""scikit-learn's checks of estimators, by a shim that makes bags of labels, and its model selection."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people
from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from llpbench import LLPClassifier

CANNOT_HOLD = {
    **dict.fromkeys(
        (
            "check_n_features_in_after_fitting",
            "check_complex_data",
            "check_estimators_empty_data_messages",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_requires_y_none",
        ),
        "it refuses the input with a ValueError of its own words",
    ),
    **dict.fromkeys(
        ("check_classifiers_one_label_sample_weights", "check_classifiers_regression_target", "check_supervised_y_2d"),
        "bags have any labels, and weights need counts",
    ),
    "check_fit_score_takes_y": "the second argument of fit is bags, not y",
    "check_classifier_data_not_an_array": "rows must be a frame or an array",
    "check_fit2d_1feature": "its ten rows give counts in which a class is the sum of the others",
}
"""Checks that fail, and why."""


class OfLabels(LLPClassifier):
    """The classifier in scikit-learn's form: bags of two rows, counted from labels."""

    def fit(self, X: Any, bags: Any = None, **facts: Any) -> OfLabels:
        """Fit to labels given as `bags`, unless there are other facts."""
        if facts or bags is None:
            return super().fit(X, bags, **facts)
        labels = np.asarray(bags).ravel()
        pairs = np.arange(len(labels)) // 2
        return super().fit(X, pairs, counts=pd.get_dummies(labels).groupby(pairs).sum())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_hold_except_named_ones() -> None:
    found = check_estimator(OfLabels("bag-mean-linear"), expected_failed_checks=CANNOT_HOLD, on_fail=None)
    assert not [check["check_name"] for check in found if check["status"] == "failed"]
    assert sum(check["status"] == "passed" for check in found) >= 39


def test_cross_validated_probabilities_are_those_of_held_out_bags() -> None:
    frame, bags, votes = people(200, 10)
    given = {"bags": bags, "counts": counted(bags, votes), "unmatched": "drop"}
    folds, model = GroupKFold(5), LLPClassifier("bag-mean-linear")
    found = cross_val_predict(model, frame, groups=bags, cv=folds, method="predict_proba", params=given)
    train, held = next(folds.split(frame, groups=bags))
    model.fit(frame.iloc[train], bags[train], counts=given["counts"], unmatched="drop")
    assert np.allclose(found[held], model.predict_proba(frame.iloc[held]))


def test_split_bags_name_the_splitter() -> None:
    frame, bags, votes = people(200, 10)
    with pytest.raises(ValueError, match="GroupKFold"):
        cross_val_score(
            LLPClassifier("bag-mean-linear"), frame, bags, params={"counts": counted(bags, votes)}, error_score="raise"
        )


def test_tuples_of_an_index_are_bags() -> None:
    frame, bags, votes = people(200, 10)
    index = pd.MultiIndex.from_arrays([np.where(np.asarray(bags) < "d05", "north", "south"), bags])
    counts = counted(bags, votes)
    counts.index = pd.MultiIndex.from_tuples([("north" if bag < "d05" else "south", bag) for bag in counts.index])
    found = LLPClassifier("bag-mean-linear").fit(frame, index, counts=counts)
    assert found.bags_.tolist() == [*counts.index]

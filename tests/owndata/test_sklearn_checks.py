"""scikit-learn's contract: its checks by a shim that makes bags of labels, its attributes, and model selection."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from llpbench import LLPBenchError, LLPClassifier, bag_scorer

TREES = {"trees": 100}
FRAME, BAGS, VOTES = people(300, 12)
TABLE = counted(BAGS, VOTES)

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


def fitted() -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(FRAME, BAGS, counts=TABLE)


def test_cross_validated_probabilities_are_those_of_held_out_bags() -> None:
    given, folds = {"bags": BAGS, "counts": TABLE, "unmatched": "drop"}, GroupKFold(5)
    model = LLPClassifier("bag-mean-linear")
    found = cross_val_predict(model, FRAME, groups=BAGS, cv=folds, method="predict_proba", params=given)
    train, held = next(folds.split(FRAME, groups=BAGS))
    model.fit(FRAME.iloc[train], BAGS[train], counts=TABLE, unmatched="drop")
    assert np.allclose(found[held], model.predict_proba(FRAME.iloc[held]))
    with pytest.raises(ValueError, match="GroupKFold"):  # bags are split
        cross_val_score(model, FRAME, BAGS, params={"counts": TABLE}, error_score="raise")


def test_tuples_of_an_index_are_bags() -> None:
    parts = np.where(BAGS < "d05", "north", "south")
    counts = counted(BAGS, VOTES)
    counts.index = pd.MultiIndex.from_tuples([("north" if bag < "d05" else "south", bag) for bag in counts.index])
    found = LLPClassifier("bag-mean-linear").fit(FRAME, pd.MultiIndex.from_arrays([parts, BAGS]), counts=counts)
    assert found.bags_.tolist() == [*counts.index]


def test_estimator_clones_with_parameters() -> None:
    model = LLPClassifier("count-gbdt", params=TREES, random_state=3)
    given = {"method": "count-gbdt", "params": TREES, "ensemble": 1, "random_state": 3, "encoder": "mlp"}
    assert model.get_params().items() >= given.items()
    assert model.fit(FRAME, BAGS, counts=TABLE) is model
    fresh = clone(model)
    for call in (fresh.predict, lambda rows: fresh.score(rows, VOTES), lambda _: fresh.effects()):
        with pytest.raises(NotFittedError, match=r"^this LLPClassifier is not fitted yet\. Call fit") as error:
            call(FRAME)
        assert isinstance(error.value, LLPBenchError)  # the command line and notebooks show these in a line
        assert error.value._render_traceback_() == [f"UnfittedError: {error.value}"]
    again = fresh.fit(FRAME, BAGS, counts=TABLE)
    assert np.array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))


def test_pipeline_is_selected_over_whole_bags() -> None:
    model = make_pipeline(SimpleImputer(), LLPClassifier("bag-mean-linear"))
    given: dict[str, Any] = {"llpclassifier__counts": TABLE, "llpclassifier__unmatched": "drop"}
    grid = {"llpclassifier__params": [{"strength": 1.0}, {"strength": 1e4}]}
    search = GridSearchCV(model, grid, scoring=bag_scorer, cv=GroupKFold(3), error_score="raise")
    search.fit(FRAME[["age"]], BAGS, groups=BAGS, **given)
    assert search.best_params_ == {"llpclassifier__params": {"strength": 1.0}}


def test_bags_are_not_scored_as_classes() -> None:
    model = fitted()
    assert model.score(FRAME, VOTES) == (model.predict(FRAME) == VOTES).mean()
    with pytest.raises(LLPBenchError, match=r"y must be classes \(\[0, 1\]\) or bags of fit, got 'new'. .* score_"):
        model.score(FRAME, ["new"] * 300)
    numbered = model.fit(FRAME, np.arange(300) // 25, counts=dict.fromkeys(range(12), 4))
    with pytest.raises(LLPBenchError, match="1 is both"):
        numbered.score(FRAME[25:50], [1] * 25)


@pytest.mark.parametrize("long", [False, True])
def test_grid_search_scores_held_out_bags(long: bool) -> None:
    """Without scoring=, and with names of nested hyperparameters."""
    frame = FRAME[["age"]]
    given: dict[str, Any] = {"counts": TABLE.stack() if long else TABLE, "unmatched": "drop"}
    grid = {"params__strength": [1.0, 1e4], "random_state": [3]}
    found = [
        GridSearchCV(LLPClassifier("bag-mean-linear"), grid, cv=GroupKFold(3), error_score="raise", **how).fit(
            frame, BAGS, groups=BAGS, **given
        )
        for how in ({}, {"scoring": bag_scorer})
    ]
    assert found[0].best_params_ == {"params__strength": 1.0, "random_state": 3}
    assert found[0].best_estimator_.params == {"strength": 1.0}
    assert [*found[0].cv_results_["mean_test_score"]] == [*found[1].cv_results_["mean_test_score"]]
    held = []
    for a, b in GroupKFold(3).split(frame, groups=BAGS):
        model = LLPClassifier("bag-mean-linear").fit(frame.iloc[a], BAGS[a], **given)  # of strength 1
        held.append(model.score_bags(frame.iloc[b], BAGS[b], counts=TABLE.loc[np.unique(BAGS[b])])["kl"])
    assert -np.mean(held) == pytest.approx(found[0].cv_results_["mean_test_score"][0])


def test_nested_parameter_keeps_others() -> None:
    model = LLPClassifier("dllp", params={"weight_decay": 0.1}).set_params(params__learning_rate=0.01, epochs=3)
    assert (model.params, model.epochs) == ({"weight_decay": 0.1, "learning_rate": 0.01}, 3)
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense__x=1)


def test_counts_of_fit_are_remembered(tmp_path: Path) -> None:
    model = fitted()
    expected = model.score_bags(FRAME, BAGS, counts=TABLE)
    assert model.score_bags(FRAME, BAGS) == expected
    model.save(tmp_path / "model")
    assert LLPClassifier.load(tmp_path / "model").score_bags(FRAME, BAGS) == pytest.approx(expected)
    with pytest.raises(LLPBenchError, match="new"):
        model.score_bags(FRAME[:20], ["new"] * 20)
    some = FRAME[BAGS < "d04"], BAGS[BAGS < "d04"]
    found = model.score_bags(*some, counts=TABLE[:4])
    with pytest.raises(LLPBenchError, match=r"8 of 12 bags with counts .* have no rows"):
        model.score_bags(*some, counts=TABLE)
    assert model.score_bags(*some, counts=TABLE, unmatched="drop") == found
    assert model.score_bags(FRAME, BAGS, counts=TABLE[:4], unmatched="drop") == pytest.approx(found)


def test_attributes_and_tags_follow_scikit_learn() -> None:
    model = fitted()
    assert model.n_features_in_ == 4
    assert list(model.feature_names_in_) == ["age", "owns", "town", "job"]
    assert np.array_equal(model.predict_proba(FRAME[FRAME.columns[::-1]]), model.predict_proba(FRAME))
    tags = model.__sklearn_tags__()
    assert tags.estimator_type == "classifier"
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    array = FRAME[["age"]].to_numpy()
    model.fit(array, BAGS, counts=TABLE)
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(array).shape == (300,)

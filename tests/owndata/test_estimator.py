"""The estimator: scikit-learn's contract, and what a fit costs and shows (padding, threads, its stage)."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import functools
import io
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bagged import in_bags, rows_of
from bench import refusal
from districts import counted, people, reloaded
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

from llpbench import LLPBenchError, LLPClassifier, bag_scorer
from llpbench.blocks import bag_process, trees
from llpbench.blocks.side_by_side import workers
from llpbench.blocks.trees import _later
from llpbench.core.bags import BaggedRows, Holdout, IntArray, Ragged
from llpbench.core.metrics import holdout_criteria
from llpbench.data.bag_tables import BagLabels
from llpbench.owndata import fitting
from llpbench.owndata.fitted import coarse_criteria
from llpbench.owndata.fitting import FitSettings

FRAME, BAGS, VOTES = people(300, 12)
TABLE = counted(BAGS, VOTES)

REFUSED = ["n_features_in_after_fitting", "complex_data", "estimators_empty_data_messages", "requires_y_none"]
REFUSED += ["estimator_sparse_array", "estimator_sparse_matrix", "fit2d_1sample", "fit2d_predict1d"]
OF_LABELS = ["classifiers_one_label_sample_weights", "classifiers_regression_target", "supervised_y_2d"]
CANNOT_HOLD = {
    **dict.fromkeys(REFUSED, "it refuses the input with a ValueError of its own words"),
    **dict.fromkeys(OF_LABELS, "bags have any labels, and weights need counts"),
    "fit_score_takes_y": "the second argument of fit is bags, not y",
    "classifier_data_not_an_array": "rows must be a frame or an array",
    "fit2d_1feature": "its ten rows give counts in which a class is the sum of the others",
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
    expected = {f"check_{name}": reason for name, reason in CANNOT_HOLD.items()}
    found = check_estimator(OfLabels("bag-mean-linear"), expected_failed_checks=expected, on_fail=None)
    assert not [check["check_name"] for check in found if check["status"] == "failed"]
    assert sum(check["status"] == "passed" for check in found) >= 39


def fitted(frame: Any = FRAME, bags: Any = BAGS, counts: Any = TABLE, **given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts, **given)


def test_cross_validated_probabilities_are_those_of_held_out_bags() -> None:
    given, folds = {"bags": BAGS, "counts": TABLE, "unmatched": "drop"}, GroupKFold(5)
    model = LLPClassifier("bag-mean-linear")
    found = cross_val_predict(model, FRAME, groups=BAGS, cv=folds, method="predict_proba", params=given)
    train, held = next(folds.split(FRAME, groups=BAGS))
    of_fold = fitted(FRAME.iloc[train], BAGS[train], unmatched="drop")
    assert np.allclose(found[held], of_fold.predict_proba(FRAME.iloc[held]))
    with pytest.raises(ValueError, match="GroupKFold"):  # bags are split
        cross_val_score(model, FRAME, BAGS, params={"counts": TABLE}, error_score="raise")


def test_estimator_clones_with_parameters_and_nested_one_keeps_others() -> None:
    model = LLPClassifier("dllp", params={"weight_decay": 0.1}).set_params(params__learning_rate=0.01, epochs=3)
    assert (model.params, model.epochs) == ({"weight_decay": 0.1, "learning_rate": 0.01}, 3)
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense__x=1)
    model = LLPClassifier("count-gbdt", params={"trees": 100}, random_state=3)
    assert model.fit(FRAME, BAGS, counts=TABLE) is model
    fresh = clone(model)
    for call in (fresh.predict, lambda rows: fresh.score(rows, VOTES), lambda _: fresh.effects()):
        with pytest.raises(NotFittedError, match=r"^this LLPClassifier is not fitted yet\. Call fit") as error:
            call(FRAME)
        assert isinstance(error.value, LLPBenchError)  # the command line and notebooks show these in a line
        assert error.value._render_traceback_() == [f"UnfittedError: {error.value}"]
    again = fresh.fit(FRAME, BAGS, counts=TABLE)
    assert np.array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))


def test_bags_are_not_scored_as_classes() -> None:
    model = fitted()
    assert model.score(FRAME, VOTES) == (model.predict(FRAME) == VOTES).mean()
    with refusal(r"y must be classes \(\[0, 1\]\) or bags of fit, got 'new'. .* score_"):
        model.score(FRAME, ["new"] * 300)
    with refusal("1 is both"):
        fitted(FRAME, np.arange(300) // 25, dict.fromkeys(range(12), 4)).score(FRAME[25:50], [1] * 25)


def search(model: Any, grid: dict[str, Any], scoring: Any = None, **given: Any) -> Any:
    """Choose one of two strengths by held-out bags."""
    found = GridSearchCV(model, grid, scoring=scoring, cv=GroupKFold(3), error_score="raise")
    return found.fit(FRAME[["age"]], BAGS, groups=BAGS, **given)


@pytest.mark.parametrize("counts", [TABLE, TABLE.stack()], ids=["wide", "long"])
def test_grid_search_scores_held_out_bags(counts: Any) -> None:
    """Without scoring=, and with names of nested hyperparameters; and in a pipeline."""
    model, grid = LLPClassifier("bag-mean-linear"), {"params__strength": [1.0, 1e4], "random_state": [3]}
    found, other = (search(model, grid, how, counts=counts, unmatched="drop") for how in (None, bag_scorer))
    assert found.best_params_ == {"params__strength": 1.0, "random_state": 3}
    assert found.best_estimator_.params == {"strength": 1.0}
    assert [*found.cv_results_["mean_test_score"]] == [*other.cv_results_["mean_test_score"]]
    frame, held = FRAME[["age"]], []
    for a, b in GroupKFold(3).split(frame, groups=BAGS):
        of_fold = fitted(frame.iloc[a], BAGS[a], counts, unmatched="drop")  # of strength 1
        held.append(of_fold.score_bags(frame.iloc[b], BAGS[b], counts=TABLE.loc[np.unique(BAGS[b])])["kl"])
    assert -np.mean(held) == pytest.approx(found.cv_results_["mean_test_score"][0])
    pipeline, grid = (
        make_pipeline(SimpleImputer(), model),
        {"llpclassifier__params": [{"strength": 1.0}, {"strength": 1e4}]},
    )
    given: dict[str, Any] = {"llpclassifier__counts": counts, "llpclassifier__unmatched": "drop"}
    assert search(pipeline, grid, bag_scorer, **given).best_params_ == {"llpclassifier__params": {"strength": 1.0}}


def test_counts_of_fit_are_remembered(tmp_path: Path) -> None:
    model = fitted()
    expected = model.score_bags(FRAME, BAGS, counts=TABLE)
    assert model.score_bags(FRAME, BAGS) == expected
    assert reloaded(model, tmp_path).score_bags(FRAME, BAGS) == pytest.approx(expected)
    with refusal("new"):
        model.score_bags(FRAME[:20], ["new"] * 20)
    some = FRAME[BAGS < "d04"], BAGS[BAGS < "d04"]
    found = model.score_bags(*some, counts=TABLE[:4])
    with refusal(r"8 of 12 bags with counts .* have no rows"):
        model.score_bags(*some, counts=TABLE)
    assert model.score_bags(*some, counts=TABLE, unmatched="drop") == found
    assert model.score_bags(FRAME, BAGS, counts=TABLE[:4], unmatched="drop") == pytest.approx(found)


def test_attributes_and_tags_follow_scikit_learn() -> None:
    model = fitted()
    assert (model.n_features_in_, *model.feature_names_in_) == (4, "age", "owns", "town", "job")
    assert np.array_equal(model.predict_proba(FRAME[FRAME.columns[::-1]]), model.predict_proba(FRAME))
    tags = model.__sklearn_tags__()
    assert (tags.estimator_type, tags.input_tags.allow_nan, tags.input_tags.categorical) == ("classifier", True, True)
    model = fitted(array := FRAME[["age"]].to_numpy())
    assert (hasattr(model, "feature_names_in_"), model.predict(array).shape) == (False, (300,))


def bagged(seed: int = 0, rows: int = 60, bags: int = 7) -> tuple[BaggedRows, BaggedRows]:
    """The same bags, padded and not."""
    rng = np.random.default_rng(seed)
    of_row = rng.permutation(np.append(np.arange(bags), rng.integers(0, bags, rows - bags)))
    sizes = np.bincount(of_row)
    counts = np.stack([sizes - sizes // 3, sizes // 3], axis=1).astype(float)
    counts[2] = np.nan
    index = [np.flatnonzero(of_row == bag).tolist() for bag in range(bags)]
    padded = in_bags(rows_of(rng.normal(size=(rows, 2)).tolist()), index, counts.tolist())
    return padded, replace(padded, index=BagLabels(of_row, [*range(bags)]).index())


def test_criteria_of_unpadded_bags_equal_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    padded, ragged = bagged()
    p = np.random.default_rng(1).random(60)
    proba = np.stack([1 - p, p], axis=1)
    expected = holdout_criteria(proba, Holdout(padded.rows, padded.index, padded.counts, labels=None))
    names = ("mpiou", "mpiou-hard", "l1", "l1-hard", "kl", "likelihood")
    for most in (fitting.MOST_PADDED, 40):
        monkeypatch.setattr("llpbench.owndata.fitted.MOST_PADDED", most)
        assert coarse_criteria(proba, ragged) == pytest.approx({name: expected[name] for name in names})


def test_large_bags_train_networks_in_parts_and_are_not_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ragged = bagged()
    monkeypatch.setattr(fitting, "_LARGEST_IN_STEP", 4)
    parts = fitting._in_parts(ragged, np.random.default_rng(0))
    assert (parts.sizes.max(), sorted(parts.bag_by_bag)) == (4, [*range(60)])
    whole = ragged.bag_of_row[[rows[0] for rows in parts.index]]
    assert all((ragged.bag_of_row[rows] == bag).all() for rows, bag in zip(parts.index, whole, strict=True))
    assert np.allclose(parts.proportions, ragged.proportions[whole])
    assert np.array_equal(parts.known, ragged.known[whole])
    monkeypatch.setattr(fitting, "MOST_PADDED", 100)
    of_row = np.append(np.repeat(np.arange(60), 2), np.full(500, 60))
    bags = replace(bagged(rows=620)[1], index=BagLabels(of_row, [*range(61)]).index(), counts=np.ones((61, 2)))
    assert not any(fitting._held_out(bags, 0.5, seed)[60] for seed in range(20))


@pytest.mark.parametrize("method", ["count-gbdt", "dllp"])
def test_large_bag_causes_little_padding(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 bags of a row and one of 1,000: a padded index has a million places."""
    cells: list[int] = []
    padded = BaggedRows.padded

    def watched(self: BaggedRows, bags: IntArray, width: int) -> IntArray:
        cells.append(len(bags) * width)
        return padded(self, bags, width)

    monkeypatch.setattr(BaggedRows, "padded", watched)
    monkeypatch.setattr(fitting, "MOST_PADDED", 10_000)
    (frame, _, votes), bags = people(2000, 10), np.arange(2000).clip(max=1000)
    table = counted(bags, votes)
    params = {"trees": 100} if method == "count-gbdt" else None
    model = LLPClassifier(method, params=params, epochs=1, bags_per_step=16).fit(frame, bags, counts=table)
    assert isinstance(model._known.index, Ragged)
    model.score_bags(frame, bags, counts=table)
    assert max(cells) < 10_000


def test_one_class_per_row_is_refused() -> None:
    bags = np.repeat([0, 1, 2], 10)
    counts = pd.DataFrame(np.equal.outer(range(3), bags) * 1, columns=[f"row {number}" for number in range(30)])
    frame = pd.DataFrame({"a": np.arange(30.0) % 7})
    with refusal("30 classes for 30 rows"):
        LLPClassifier("bag-share").fit(frame, bags, counts=counts)
    LLPClassifier("bag-share").fit(pd.concat([frame] * 5), np.tile(bags, 5), counts=5 * counts)


def test_auto_is_independent_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_process, "_SCORED", 2)
    grown: dict[int | None, int] = {}

    def watched(compute: object) -> object:
        return _later(lambda: (compute(), grown.setdefault(jobs, threading.get_ident()))[0])  # type: ignore[operator]

    monkeypatch.setattr(trees, "_later", watched)
    (frame, bags, votes), found = people(240, 30), []
    for jobs in (1, 2):
        model = LLPClassifier(n_jobs=jobs, random_state=3).fit(frame, bags, counts=counted(bags, votes))
        found.append(model.predict_proba(frame))
    assert np.allclose(found[0], found[1], atol=1e-6), "two threads may add up in another order"
    assert grown[1] == threading.get_ident() != grown[2]


def test_small_tables_use_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(5), raising=False)
    large = fitting._SMALL + 1
    for jobs, rows, blas, expected in (None, 9, 1, 1), (-1, 9, 1, 5), (1, 9, 1, 1), (2, 9, 1, 2), (2, large, 2, 2):
        with FitSettings(n_jobs=jobs)._threads(rows):
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {blas}
            assert workers() == expected


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_in_terminal_only(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    screen = io.StringIO()
    console = functools.partial(Console, file=screen, force_terminal=terminal, width=100, highlight=False)
    monkeypatch.setattr(fitting, "Console", lambda **_: console())
    monkeypatch.delenv("NO_COLOR", raising=False)
    with fitting.progress_display() as display:
        display.add_task("sample of bags", total=None)
    assert ("sample of bags" in screen.getvalue()) == terminal
    assert terminal or not screen.getvalue().strip()

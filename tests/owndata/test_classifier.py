"""`LLPClassifier`: scikit-learn's contract, what it learns, sums of whole bags, errors, and costs of a fit."""

from __future__ import annotations

import functools
import io
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from bagged import in_bags, repeated, rows_of
from bench import refusal
from districts import counted, people, reloaded, silent, warned
from rich.console import Console
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

from llpbench import LLPBenchError, LLPClassifier, bag_scorer
from llpbench.blocks import assigning, bag_process
from llpbench.blocks.side_by_side import workers
from llpbench.blocks.trees import TreeRows
from llpbench.core.bags import BaggedRows, Holdout, IntArray, Ragged
from llpbench.core.metrics import holdout_criteria
from llpbench.core.registry import METHODS
from llpbench.data.bag_tables import BagLabels
from llpbench.owndata import fitting
from llpbench.owndata.fitted import coarse_criteria
from llpbench.owndata.fitting import FitSettings, MeanPredictor, NetworkPredictor

TREES = {"trees": 100}
FRAME, BAGS, VOTES = people(300, 12)
TABLE = counted(BAGS, VOTES)
NUMBERS = pd.factorize(BAGS, sort=True)[0]  # an array is in their order
NUMBERED = counted(NUMBERS, VOTES * (NUMBERS != 3))  # a bag has none of a class
SIZES, LISTED = NUMBERED.sum(axis=1), NUMBERED.stack().sample(frac=1.0, random_state=0)
IN_ORDER = repeated(2)
SIX = Ragged(np.random.default_rng(0).permutation(3000), IN_ORDER.sizes)
RAGGED = replace(IN_ORDER, index=SIX, counts=np.where(np.arange(6)[:, None] == 2, np.nan, IN_ORDER.counts))


def fitted(method: str = "bag-mean-linear", **settings: Any) -> LLPClassifier:
    return LLPClassifier(method, **settings).fit(FRAME, BAGS, counts=TABLE)


def linear(frame: Any = FRAME, bags: Any = BAGS, counts: Any = TABLE, **given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts, **given)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({"counts": NUMBERED[[1, 0]].sample(frac=1.0, random_state=0)}, id="frame in any order"),
        pytest.param({"counts": NUMBERED[1]}, id="series of one class"),
        pytest.param({"counts": NUMBERED[1].to_dict()}, id="mapping of one class"),
        pytest.param({"counts": {bag: row[row > 0].to_dict() for bag, row in NUMBERED.iterrows()}}, id="two mappings"),
        pytest.param({"counts": NUMBERED.to_numpy()}, id="array"),
        pytest.param({"counts": NUMBERED[1].to_list()}, id="list of one class"),
        pytest.param({"proportions": NUMBERED[1] / SIZES}, id="shares of one class"),
        pytest.param({"proportions": NUMBERED.div(SIZES, axis=0)}, id="frame of shares"),
        pytest.param({"counts": LISTED[LISTED > 0]}, id="long, without zeros"),
        pytest.param({"proportions": LISTED / SIZES.reindex(LISTED.index, level=0)}, id="long shares"),
    ],
)
def test_all_forms_of_counts_give_same_model(form: dict[str, Any]) -> None:
    model, wide = (linear(FRAME, NUMBERS, **{"counts": None, **each}) for each in (form, {"counts": NUMBERED}))
    assert list(model.classes_) == [0, 1]
    assert np.allclose(model.bag_counts_, NUMBERED)
    assert np.allclose(model.predict_proba(FRAME), wide.predict_proba(FRAME))


@pytest.mark.parametrize("names", [["no", "yes"], ["no", "old", "yes"]], ids=" ".join)
def test_whole_bag_predictions_match_counts(names: list[str]) -> None:
    frame, bags, votes = people(300, 12, classes=len(names))
    table = counted(bags, np.array(names)[votes])
    table.loc["d00", ["no", "yes"]] += table.loc["d00", "no"] * np.array([-1, 1])  # one bag has none of a class
    model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=table)
    order = np.random.default_rng(0).permutation(len(frame))  # rows in any order
    shuffled, where = frame.iloc[order], bags[order]
    proba = model.disaggregate(shuffled, where)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (proba >= 0).all()
    assert np.allclose(pd.DataFrame(proba).groupby(where).sum(), table, atol=1e-6)
    assert counted(where, model.assign(shuffled, where)).to_numpy().tolist() == table.to_numpy().tolist()
    plain = pd.DataFrame(model.predict_proba(shuffled)).groupby(where).sum()
    assert np.abs(plain.to_numpy() - table.to_numpy()).max() > 1
    new, where, truth = people(100, 4, seed=5, classes=len(names))  # other whole bags with counts of their own
    share = pd.crosstab(where, model.classes_[truth], normalize="index")
    assert np.allclose(pd.DataFrame(model.disaggregate(new, where, proportions=share)).groupby(where).mean(), share)


def test_assigned_labels_are_most_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along paths, also from prices that are of no use at first, as by places."""
    rng, prices = np.random.default_rng(0), assigning._prices
    some = [3, 1, 2], [0, 6, 0], [0, 1, 5], [2, 2, 2], [90, 0, 210]
    for counts in (*some, rng.multinomial(300, rng.dirichlet([1] * 8))):
        rows, logits = np.arange(sum(counts)), 3 * rng.normal(size=(sum(counts), len(counts)))
        cost = logits[:, np.repeat(np.arange(len(counts)), counts)]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        for small, first in (500, prices), (0, prices), (0, lambda logits, _: np.zeros(logits.shape[1])):
            monkeypatch.setattr(assigning, "_SMALL", small)
            monkeypatch.setattr(assigning, "_prices", first)
            found = assigning.assigned(logits, in_bags(rows_of([[0.0]] * len(rows)), [rows], [[*counts]]))
            assert np.array_equal(np.bincount(found, minlength=len(counts)), counts)
            assert np.isclose(logits[rows, found].sum(), best)


def test_members_are_averaged() -> None:
    one, two = (fitted("count-gbdt", params=TREES, ensemble=number) for number in (1, 2))
    assert isinstance(two._model.predictor, MeanPredictor)
    apart = [member(two._rows(FRAME)) for member in two._model.predictor.members]
    assert np.array_equal(apart[0], one.predict_proba(FRAME))
    assert not np.array_equal(apart[0], apart[1])
    assert np.allclose(two.predict_proba(FRAME), (apart[0] + apart[1]) / 2)


def test_effects_use_units_of_columns(files: Path) -> None:
    model = LLPClassifier.load(files / "process")
    (age, *others), of_no = model.effects(), model.effects("no")
    assert [age.name, *(each.name for each in others)] == ["age", "owns", "town", "job"]
    assert age.edges is not None
    assert 20 < age.edges[0] < age.edges[-1] < 90
    assert age.values[0] < 0 < age.values[len(age.edges)]  # the old vote yes
    assert {"A", "B", "missing"} <= {*(others[1].categories or ())}
    assert np.allclose(of_no[0].values, -age.values)
    assert [(each.name, each.label) for each in of_no.strongest(1)] == [("age", "no")]
    assert (len(repr(of_no).splitlines()), "'no'" in repr(of_no)) == (2 + 4, True), "a line a feature"
    assert age._repr_html_().count("<tr>") == len(age.values)
    with refusal(r"label must be one of the classes .* got 'maybe'"):
        model.effects("maybe")
    with refusal("has no effects"):
        fitted().effects()


def test_networks_stop_by_held_out_bags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.owndata.fitting.PREDICT_ROWS", 64)  # more than one chunk
    frame, bags, votes = people(400, 20)
    table = counted(bags, votes).drop("d03").reindex(np.unique(bags))
    model = LLPClassifier("dllp", params={"learning_rate": 0.01}, epochs=15, patience=5, ensemble=2)
    model.fit(frame, bags, counts=table)
    new, _, truth = people(200, seed=1)
    proba = model.predict_proba(new)
    assert np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert roc_auc_score(truth, proba[:, 1]) > 0.75
    assert isinstance(model._model.predictor, NetworkPredictor)
    first, second = model._model.predictor.weights
    assert any(not np.array_equal(value, second[name]) for name, value in first.items())
    one = clone(model).set_params(ensemble=1).fit(frame, bags, counts=table)
    for name, value in one._model.predictor.weights[0].items():  # the first member is the same alone
        assert np.allclose(value, first[name], atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "change", "told"),
    [
        ({}, {"bags": BAGS[:-1]}, "bags has 299 entries, X has 300 rows"),
        ({}, {"counts": TABLE.drop("d02")}, r"1 of 12 bags \('d02'\)"),
        ({}, {"counts": pd.concat([TABLE, TABLE.iloc[:1].set_axis(["d99"])])}, r"1 of 13 bags .*\('d99'\) has no rows"),
        ({}, {"counts": pd.concat([TABLE, TABLE.iloc[:1]])}, "got two for 'd00'"),
        ({}, {"counts": TABLE * [1, -1]}, rf"^bag 'd00' .* {TABLE[0].iloc[0]}, -"),
        ({}, {"counts": TABLE.astype(object).replace(TABLE.iloc[0, 0], "many")}, "counts must be numbers"),
        ({}, {"counts": TABLE.reset_index(names="shop").astype({"shop": str})}, r"counts=frame.set_index\('shop'\)"),
        ({}, {"counts": TABLE.to_numpy()[:-1]}, "12 bags, got 11"),
        ({}, {"counts": TABLE[1], "classes": ["a", "a"]}, "without repeats"),
        ({}, {"counts": TABLE[1], "classes": ["a", 1]}, "all texts or all numbers"),
        ({}, {"bags": pd.Series(BAGS)[::-1]}, r"entry 0 is 299 in bags and 0 in X. Give bags.loc\[X.index\]"),
        ({}, {"counts": TABLE[1] * 0}, "known bags must have two classes, got only 0 in all 12"),
        ({}, {"counts": TABLE.astype(float).mask(np.arange(12)[:, None] > np.zeros(2))}, "got 1 of 12"),
        ({}, {"bags": pd.Series(BAGS).where(BAGS != "d00")}, r"\d+ of 300 rows have no bag"),
        ({}, {"bags": None}, "bags must contain the label of each row's bag, .* got None"),
        ({}, {"counts": 5}, "counts must be .* got 5"),
        ({}, {"sizes": dict.fromkeys(TABLE.index, 10.5)}, "sizes must be whole numbers .* got 10.5"),
        ({}, {"counts": None, "proportions": TABLE[1] * 0 + 10}, r"bag 'd00' has the proportion 10 .*between 0 and 1"),
        ({"device": "gpu"}, {}, "unknown device 'gpu'"),
        ({"encoder_params": {"nope": 1}}, {}, "mlp has no hyperparameter 'nope'"),
        ({"validation": 1.5}, {}, "between 0 and 1, got 1.5"),
        ({}, {"X": FRAME["age"].to_numpy()}, r"rows and columns, got an array of shape \(300,\)"),
        ({}, {"X": csr_matrix(FRAME[["age"]])}, r"sparse.*\.toarray\(\)"),
        ({}, {"suppress_impossible": True}, r"suppress_impossible.* counts, .*\bimpossible"),
        ({}, {"X": FRAME.assign(age=np.inf)}, "^X: column 'age' contains an infinite value"),
        ({}, {"X": FRAME.set_axis(["a", "a", "b", "c"], axis=1)}, "two columns called 'a'"),
        ({"method": "supervised-gbdt"}, {}, "needs labels of rows"),
        ({"method": "dllp", "encoder": "mpl"}, {}, "unknown encoder 'mpl'. Did you mean mlp"),
        ({"method": "dllp"}, {"counts": TABLE[:3].reindex(TABLE.index)}, "at least 4 bags with known counts.* got 3"),
        ({"random_state": None}, {}, "random_state must be a whole number from 0, got None"),
        ({"method": "count-gbdt", "encoder": "saint"}, {}, "'count-gbdt' has no encoder"),
        ({"ensemble": 0}, {}, "ensemble must be a whole number from 1"),
    ],
)
def test_inconsistent_input_is_refused(settings: dict[str, Any], change: dict[str, Any], told: str) -> None:
    model = LLPClassifier(**{"method": "bag-mean-linear", **settings})
    with refusal(told):
        model.fit(**{"X": FRAME, "bags": BAGS, "counts": TABLE, **change})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: m.predict(FRAME.drop(columns="age")), r"lacks 1 column \(age\)"),
        (lambda m: m.predict(FRAME[:0].drop(columns="age")), "lacks 1 column"),
        (lambda m: m.predict_proba(FRAME.iloc[5]), r"X\.iloc\[\["),
        (lambda m: m.predict(csr_matrix(FRAME[["age"]])), r"\.toarray\(\)"),
        (lambda m: m.predict(FRAME.assign(age="old")), "'age' must contain numbers.* 'old'"),
        (lambda m: m.predict(FRAME.assign(owns=FRAME["owns"].astype(int))), "'owns' must .* got 1"),
        (lambda m: m.predict_proba(FRAME, np.arange(300)), r"look like 0, but fit saw labels like 'd00'"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE.rename(columns={1: 2})), r"must be of the classes \[0, 1\]"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE + 1), r"12 of 12 bags.*NaN"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE[1:]), r"^1 of 12 bags .* no counts.* NaN\.$"),
        (lambda m: m.predict_proba(FRAME, pd.DataFrame({"bag": BAGS})[::-1]), "bags.loc"),
        (lambda m: m.assign(FRAME[BAGS > "d00"], BAGS[BAGS > "d00"], counts=TABLE), "1 of 12 bags .* has no rows"),
        (lambda m: m.disaggregate(pd.concat([FRAME, FRAME[:1]]), [*BAGS, None]), "^1 row has no bag. Leave"),
        (lambda m: m.predict(FRAME.to_numpy()), "X is an array, .* fit was given a frame with [a-z, ]+. Give a frame"),
        (lambda m: m.score_bags(FRAME, BAGS, counts=TABLE * np.nan), "at least one bag must have known counts"),
    ],
)
def test_impossible_prediction_is_refused(call: Any, told: str) -> None:
    with refusal(told):
        call(fitted())


@pytest.mark.parametrize(
    ("values", "told"),
    [
        pytest.param(np.arange(7, 47), True, id="line numbers"),
        pytest.param(np.random.default_rng(0).permutation(40), True, id="shuffled line numbers"),
        pytest.param(np.cumsum(np.arange(1, 41))[::-1], True, id="descending with gaps"),
        pytest.param(np.arange(7, 47, dtype=np.float16), True, id="numbers of two bytes"),
        pytest.param([f"person {number}" for number in range(40)], True, id="a text for each row"),
        pytest.param(np.random.default_rng(0).permutation(40) ** 2, False, id="squares in any order"),
        pytest.param(np.arange(40) / 8, False, id="fractions"),
        pytest.param(np.arange(40) // 2, False, id="pairs of numbers"),
        pytest.param(["a", "b"] * 20, False, id="two texts"),
        pytest.param([f"p{number // 2}" for number in range(240)], True, id="pairs of texts"),
        pytest.param([f"p{number // 3}" for number in range(240)], False, id="triples of texts"),
        pytest.param([f"{1000 + 7 * number:,}" for number in range(240)], False, id="numbers as texts"),
    ],
)
def test_identifier_column_is_warned_of(values: Any, told: bool) -> None:
    frame = pd.DataFrame({"age": np.random.default_rng(1).integers(0, 9, len(values)), "what": values})
    with warned("identifier", "'what'") if told else silent("identifier"):
        LLPClassifier("bag-share").fit(frame, np.arange(len(values)) % 4, counts=[3, 4, 5, 6])


def test_ensemble_trains_with_suppressed_bags(tmp_path: Path) -> None:
    model = LLPClassifier("dllp", epochs=2, ensemble=2).fit(FRAME, BAGS, counts=TABLE[1:].reindex(TABLE.index))
    assert np.array_equal(reloaded(model, tmp_path).predict_proba(FRAME), model.predict_proba(FRAME))


def test_networks_predict_on_requested_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def noted(name: str) -> torch.device:
        asked.append(name)
        return torch.device("cpu")

    monkeypatch.setattr("llpbench.owndata.fitting.pick_device", noted)
    model = fitted("dllp", epochs=1, device="cpu")
    expected, loaded = model.predict_proba(FRAME), reloaded(model, tmp_path)
    assert set(asked) == {"cpu"}
    fitted(device="cuda")  # a direct method needs no device
    assert b"device" not in zipfile.ZipFile(tmp_path / "model.skops").read("schema.json")
    asked.clear()
    assert np.array_equal(loaded.predict_proba(FRAME), expected)
    assert {loaded.device, *asked} == {"auto"}


@pytest.mark.parametrize(("method", "params"), [("bag-mean-linear", {}), ("count-gbdt", TREES)])
def test_no_rows_give_no_predictions(method: str, params: dict[str, Any]) -> None:
    model = fitted(method, params=params)
    shapes = [model.predict_proba(FRAME[:0], bags).shape for bags in (None, BAGS[:0])]
    assert [*shapes, model.predict(FRAME[:0]).shape] == [(0, 2), (0, 2), (0,)]


def test_failed_refit_keeps_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    before, expected = dict(model.left_out_), model.predict_proba(FRAME)
    with refusal("got 0 of 12"):
        model.fit(FRAME, BAGS, counts=TABLE + 1, impossible="suppress")
    monkeypatch.setattr(METHODS.get("bag-mean-linear"), "fit", lambda *_: lambda rows: np.full((len(rows[0]), 2), 1.6))
    with refusal(r"'bag-mean-linear' .*predictions must be in \[0, 1\]"):
        model.fit(FRAME, BAGS, counts=TABLE)
    assert model.left_out_ == before
    assert np.array_equal(model.predict_proba(FRAME), expected)


REFUSED = ["n_features_in_after_fitting", "complex_data", "estimators_empty_data_messages", "requires_y_none"]
REFUSED += ["fit2d_1sample", "fit2d_predict1d"]
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

    def fit(self, X: Any, bags: Any = None, **facts: Any) -> OfLabels:  # noqa: N803
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


def test_cross_validated_probabilities_are_those_of_held_out_bags() -> None:
    given, folds = {"bags": BAGS, "counts": TABLE, "unmatched": "drop"}, GroupKFold(5)
    model = LLPClassifier("bag-mean-linear")
    found = cross_val_predict(model, FRAME, groups=BAGS, cv=folds, method="predict_proba", params=given)
    train, held = next(folds.split(FRAME, groups=BAGS))
    of_fold = linear(FRAME.iloc[train], BAGS[train], unmatched="drop")
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


def test_attributes_tags_and_scores_follow_scikit_learn_but_bags_are_no_classes() -> None:
    model = linear()
    assert (model.n_features_in_, *model.feature_names_in_) == (4, "age", "owns", "town", "job")
    assert np.array_equal(model.predict_proba(FRAME[FRAME.columns[::-1]]), model.predict_proba(FRAME))
    tags = model.__sklearn_tags__()
    assert (tags.estimator_type, tags.input_tags.allow_nan, tags.input_tags.categorical) == ("classifier", True, True)
    of_array = linear(array := FRAME[["age"]].to_numpy())
    assert (hasattr(of_array, "feature_names_in_"), of_array.predict(array).shape) == (False, (300,))
    assert model.score(FRAME, VOTES) == (model.predict(FRAME) == VOTES).mean()
    with refusal(r"y must be classes \(\[0, 1\]\) or bags of fit, got 'new'. .* score_"):
        model.score(FRAME, ["new"] * 300)
    keys = pd.DataFrame({"state": "s", "place": BAGS})
    named = linear(FRAME, keys, counted([keys["state"], keys["place"]], VOTES))
    assert named.score(FRAME, keys) == bag_scorer(named, FRAME, keys)
    with refusal("1 is both"):
        linear(FRAME, np.arange(300) // 25, dict.fromkeys(range(12), 4)).score(FRAME[25:50], [1] * 25)


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
        of_fold = linear(frame.iloc[a], BAGS[a], counts, unmatched="drop")  # of strength 1
        held.append(of_fold.score_bags(frame.iloc[b], BAGS[b], counts=TABLE.loc[np.unique(BAGS[b])])["kl"])
    assert -np.mean(held) == pytest.approx(found.cv_results_["mean_test_score"][0])
    pipeline, strengths = make_pipeline(SimpleImputer(), model), [{"strength": 1.0}, {"strength": 1e4}]
    given: dict[str, Any] = {"llpclassifier__counts": counts, "llpclassifier__unmatched": "drop"}
    found = search(pipeline, {"llpclassifier__params": strengths}, bag_scorer, **given)
    assert found.best_params_ == {"llpclassifier__params": {"strength": 1.0}}


@pytest.mark.parametrize(
    ("counts", "facts", "off"),
    [
        (7 * TABLE, {"sampled": True}, 1e-6),
        (7 * TABLE, {"as_shares": True}, 1e-6),
        (TABLE[[1]].rename(columns=str), {"rest_as": "0"}, 1e-6),
        (2 * TABLE, {"sample_weight": np.full(300, 2.0)}, 1e-2),
        (TABLE[1].astype(object).where(TABLE.index != "d00", "0-90"), {}, 0.3),
    ],
)
def test_grid_search_scores_special_counts(counts: Any, facts: dict[str, Any], off: float) -> None:
    model, grid, given = LLPClassifier("bag-mean-linear"), {"params__strength": [1.0]}, {"counts": counts, **facts}
    found, plain = (search(model, grid, bag_scorer, **each, unmatched="drop") for each in (given, {"counts": TABLE}))
    assert found.best_score_ == pytest.approx(plain.best_score_, rel=off)


@pytest.mark.parametrize("form", ["counts", "proportions"])
def test_held_out_bags_are_scored_without_weights_if_none_reach_the_scorer(form: str) -> None:
    """Cross-validation and pipelines give weights to `fit` only."""
    weights = np.random.default_rng(0).choice([1.0, 3.0], len(FRAME))
    counts = pd.DataFrame({vote: pd.Series(weights * (vote == VOTES)).groupby(BAGS).sum() for vote in TABLE})
    shares, frame = counts.div(counts.sum(axis=1), axis=0), FRAME[["age"]]
    facts = {form: counts if form == "counts" else shares, "sample_weight": weights, "unmatched": "drop"}
    model, expected, split = LLPClassifier("bag-mean-linear"), [], {"groups": BAGS, "cv": GroupKFold(3)}
    for a, b in GroupKFold(3).split(frame, groups=BAGS):
        of_fold = clone(model).fit(frame.iloc[a], BAGS[a], **{**facts, "sample_weight": weights[a]})
        given, there = (frame.iloc[b], BAGS[b]), {"sample_weight": weights[b]}
        expected.append(-of_fold.score_bags(*given, proportions=shares.loc[np.unique(BAGS[b])])["kl"])
        with silent("no weights"):
            with_weights = bag_scorer(of_fold, *given, weights[b])
        assert with_weights == -of_fold.score_bags(*given, counts=counts, unmatched="drop", **there)["kl"]
        assert with_weights != expected[-1]
    with warned("no weights"):
        assert cross_val_score(model, frame, BAGS, params=facts, scoring=bag_scorer, **split) == pytest.approx(expected)
    pipeline, facts = make_pipeline("passthrough", model), {f"llpclassifier__{name}": facts[name] for name in facts}
    found = search(pipeline, {"llpclassifier__params": [{"strength": 1.0}]}, bag_scorer, **facts)
    assert found.best_score_ == pytest.approx(np.mean(expected))


def test_counts_of_one_class_need_weights_also_of_held_out_bags() -> None:
    inside = BAGS < "d08"
    model = linear(
        FRAME[inside], BAGS[inside], 2 * TABLE[1], sample_weight=np.full(inside.sum(), 2.0), unmatched="drop"
    )
    with refusal("sample_weight="):
        bag_scorer(model, FRAME[~inside], BAGS[~inside])
    assert bag_scorer(model, FRAME[~inside], BAGS[~inside], np.full((~inside).sum(), 2.0)) < 0


def test_held_out_bags_with_impossible_counts_are_ignored_as_in_fit() -> None:
    counts, grid = TABLE[1].where(TABLE.index != "d03", 500), {"params__strength": [1.0]}
    with refusal("d03"):
        search(LLPClassifier("bag-mean-linear"), grid, counts=counts, unmatched="drop")
    plain, found = (
        search(LLPClassifier("bag-mean-linear"), grid, counts=given, impossible="suppress", unmatched="drop")
        for given in (counts.where(counts < 500), counts)
    )
    assert found.best_score_ == pytest.approx(plain.best_score_)


@pytest.mark.parametrize(
    ("counts", "facts"),
    [
        (TABLE, {}),
        (7 * TABLE, {"sampled": True}),
        (7 * TABLE, {"as_shares": True}),
        (TABLE[1].astype(object).where(TABLE.index != "d00", "0-90"), {}),
    ],
)
def test_unknown_bags_are_named(counts: Any, facts: dict[str, Any]) -> None:
    model = linear(FRAME, BAGS, counts, **facts)
    with refusal("'new'.* counts="):
        model.score_bags(FRAME, np.where(BAGS == "d03", "new", BAGS))
    with refusal("no bag"):
        model.score_bags(FRAME, pd.Series(BAGS).where(BAGS != "d03"))


def test_counts_of_fit_are_remembered(tmp_path: Path) -> None:
    model = linear()
    expected = model.score_bags(FRAME, BAGS, counts=TABLE)
    assert model.score_bags(FRAME, BAGS) == expected
    assert reloaded(model, tmp_path).score_bags(FRAME, BAGS) == pytest.approx(expected)
    with refusal("new"):
        model.score_bags(FRAME[:20], ["new"] * 20)
    with refusal("'d00' has .* in fit"):
        linear(FRAME, BAGS, TABLE[1]).score_bags(FRAME[::2], BAGS[::2])
    some = FRAME[BAGS < "d04"], BAGS[BAGS < "d04"]
    found = model.score_bags(*some, counts=TABLE[:4])
    with refusal(r"8 of 12 bags with counts .* have no rows"):
        model.score_bags(*some, counts=TABLE)
    assert model.score_bags(*some, counts=TABLE, unmatched="drop") == found
    assert model.score_bags(FRAME, BAGS, counts=TABLE[:4], unmatched="drop") == pytest.approx(found)


def test_criteria_of_unpadded_bags_equal_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    proba = np.random.default_rng(1).dirichlet([1, 1], 3000)
    padded = Holdout(RAGGED.rows, RAGGED.padded(np.arange(6), RAGGED.sizes.max()), RAGGED.counts, labels=None)
    expected = holdout_criteria(proba, padded)
    names = ("mpiou", "mpiou-hard", "l1", "l1-hard", "kl", "likelihood")
    for most in (fitting.MOST_PADDED, 2000):
        monkeypatch.setattr("llpbench.owndata.fitted.MOST_PADDED", most)
        assert coarse_criteria(proba, RAGGED) == pytest.approx({name: expected[name] for name in names})


def test_large_bags_train_networks_in_parts_and_are_not_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_LARGEST_IN_STEP", 4)
    parts = fitting._in_parts(RAGGED, np.random.default_rng(0))
    assert (parts.sizes.max(), sorted(parts.bag_by_bag)) == (4, [*range(3000)])
    whole = RAGGED.bag_of_row[[rows[0] for rows in parts.index]]
    assert all((RAGGED.bag_of_row[rows] == bag).all() for rows, bag in zip(parts.index, whole, strict=True))
    assert np.allclose(parts.proportions, RAGGED.proportions[whole], equal_nan=True)
    assert np.array_equal(parts.known, RAGGED.known[whole])
    monkeypatch.setattr(fitting, "MOST_PADDED", 100)
    of_row = np.append(np.repeat(np.arange(60), 2), np.full(2880, 60))
    bags = replace(RAGGED, index=BagLabels(of_row, [*range(61)]).index(), counts=np.ones((61, 2)))
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


def test_auto_is_independent_of_threads_and_small_tables_use_one_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_process, "_SCORED", 2)
    grown: dict[int | None, int] = {}

    def watched(self: TreeRows, *given: Any) -> object:
        grown[jobs] = threading.get_ident()
        return boost(self, *given)

    boost = TreeRows.boost_posteriors
    monkeypatch.setattr(TreeRows, "boost_posteriors", watched)
    (frame, bags, votes), found = people(240, 30), []
    for jobs in (1, 2):
        model = LLPClassifier(n_jobs=jobs, random_state=3).fit(frame, bags, counts=counted(bags, votes))
        found.append(model.predict_proba(frame))
    assert np.allclose(found[0], found[1], atol=1e-6), "two threads may add up in another order"
    assert grown[1] == threading.get_ident() != grown[2]
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(5), raising=False)
    large = fitting._SMALL + 1
    for asked, rows, blas, expected in (None, 9, 1, 1), (-1, 9, 1, 5), (1, 9, 1, 1), (2, 9, 1, 2), (2, large, 2, 2):
        with FitSettings(n_jobs=asked)._threads(rows):
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {blas}
            assert workers() == expected


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "file"])
def test_progress_is_shown_in_terminal_only(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    screen = io.StringIO()
    console = functools.partial(Console, file=screen, force_terminal=terminal, width=100, highlight=False)
    monkeypatch.setattr(fitting, "Console", lambda **_: console())
    monkeypatch.delenv("NO_COLOR", raising=False)
    with fitting.progress_display() as display:
        display.add_task("sample of bags", total=None)
    assert ("sample of bags" in screen.getvalue()) == terminal
    assert terminal or not screen.getvalue().strip()

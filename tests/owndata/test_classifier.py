"""`LLPClassifier` on your own bags: what it learns, sums of whole bags, and errors."""

from __future__ import annotations

import zipfile
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from bagged import in_bags, rows_of
from bench import refusal
from districts import counted, people, reloaded, silent, warned
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from llpbench.blocks import assigning
from llpbench.core.registry import METHODS
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.fitting import MeanPredictor, NetworkPredictor
from llpbench.training.device import pick_device

TREES = {"trees": 100}
FRAME, BAGS, VOTES = people(60, 6)
TABLE = counted(BAGS, VOTES)
NUMBERS = pd.factorize(BAGS, sort=True)[0]  # an array is in their order
NUMBERED = counted(NUMBERS, VOTES * (NUMBERS != 3))  # a bag has none of a class
SIZES, LISTED = NUMBERED.sum(axis=1), NUMBERED.stack().sample(frac=1.0, random_state=0)


def fitted(method: str = "bag-mean-linear", **settings: Any) -> LLPClassifier:
    return LLPClassifier(method, **settings).fit(FRAME, BAGS, counts=TABLE)


@pytest.mark.parametrize(
    "form",
    [
        {"counts": NUMBERED[[1, 0]].sample(frac=1.0, random_state=0)},
        {"counts": NUMBERED[1]},
        {"counts": NUMBERED[1].to_dict()},
        {"counts": {bag: {name: n for name, n in row.items() if n} for bag, row in NUMBERED.iterrows()}},
        {"counts": NUMBERED.to_numpy()},
        {"counts": NUMBERED[1].to_list()},
        {"proportions": NUMBERED[1] / SIZES},
        {"proportions": NUMBERED.div(SIZES, axis=0)},
        {"counts": LISTED[LISTED > 0]},  # a class without rows may be left out
        {"proportions": LISTED / SIZES.reindex(LISTED.index, level=0)},
    ],
)
def test_all_forms_of_counts_give_same_model(form: dict[str, Any]) -> None:
    given: Any = (form, {"counts": NUMBERED})
    model, wide = (LLPClassifier("bag-mean-linear").fit(FRAME, NUMBERS, **each) for each in given)
    assert list(model.classes_) == [0, 1]
    assert np.allclose(model.bag_counts_, NUMBERED)
    assert np.allclose(model.predict_proba(FRAME), wide.predict_proba(FRAME))


@pytest.mark.parametrize("names", [["no", "yes"], ["no", "old", "yes"]])
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
    """Against every assignment of a small bag."""
    rng = np.random.default_rng(0)
    for counts in ([3, 1, 2], [0, 6, 0], [0, 1, 5], [2, 2, 2]):
        logits, bag = rng.normal(0.0, 2.0, (6, 3)), in_bags(rows_of([[0.0]] * 6), [range(6)], [counts])
        best = max(logits[np.arange(6), list(labels)].sum() for labels in permutations(np.repeat([0, 1, 2], counts)))
        for small in (0, 500):  # along paths, and by places
            monkeypatch.setattr(assigning, "_SMALL", small)
            found = assigning.assigned(logits, bag)
            assert np.bincount(found, minlength=3).tolist() == counts
            assert np.isclose(logits[np.arange(6), found].sum(), best)
    prices = assigning._prices
    for classes in (3, 8):  # a large bag against places, also from prices that are of no use at first
        logits, of_bag = 3 * rng.normal(size=(300, classes)), rng.multinomial(300, rng.dirichlet(np.ones(classes)))
        best = logits[np.arange(300), assigning._several(logits, of_bag)].sum()
        for first in (prices, lambda logits, _: np.zeros(logits.shape[1])):
            monkeypatch.setattr(assigning, "_prices", first)
            found = assigning._along_paths(logits, of_bag)
            assert np.bincount(found, minlength=classes).tolist() == of_bag.tolist()
            assert np.isclose(logits[np.arange(300), found].sum(), best)


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
    assert np.allclose(proba.sum(axis=1), 1, atol=1e-5)
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
        ({}, {"bags": BAGS[:-1]}, "bags has 59 entries, X has 60 rows"),
        ({}, {"counts": TABLE.drop("d02")}, r"1 of 6 bags \('d02'\)"),
        ({}, {"counts": pd.concat([TABLE, TABLE.iloc[:1].set_axis(["d99"])])}, r"1 of 7 bags .*\('d99'\) has no rows"),
        ({}, {"counts": pd.concat([TABLE, TABLE.iloc[:1]])}, "got two for 'd00'"),
        ({}, {"counts": TABLE * [1, -1]}, "^bag 'd0.* 7, -5"),
        ({}, {"counts": TABLE.astype(object).replace(TABLE.iloc[0, 0], "many")}, "counts must be numbers"),
        ({}, {"counts": TABLE.reset_index(names="shop").astype({"shop": str})}, r"counts=frame.set_index\('shop'\)"),
        ({}, {"counts": TABLE.to_numpy()[:-1]}, "6 bags, got 5"),
        ({}, {"counts": TABLE[1], "classes": ["a", "a"]}, "without repeats"),
        ({}, {"counts": TABLE[1], "classes": ["a", 1]}, "all texts or all numbers"),
        ({}, {"bags": pd.Series(BAGS)[::-1]}, r"entry 0 is 59 in bags and 0 in X. Give bags.loc\[X.index\]"),
        ({}, {"counts": TABLE[1] * 0}, "known bags must have two classes, got only 0 in all 6"),
        ({}, {"counts": TABLE.astype(float).mask(np.arange(6)[:, None] > np.zeros(2))}, "got 1 of 6"),
        ({}, {"bags": pd.Series(BAGS).where(BAGS != "d00")}, r"\d+ of 60 rows have no bag"),
        ({}, {"bags": None}, "bags must contain the label of each row's bag, .* got None"),
        ({}, {"counts": 5}, "counts must be .* got 5"),
        ({}, {"sizes": dict.fromkeys(TABLE.index, 10.5)}, "sizes must be whole numbers .* got 10.5"),
        ({}, {"counts": None, "proportions": TABLE[1] * 0 + 10}, r"bag 'd00' has the proportion 10 .*between 0 and 1"),
        ({"device": "gpu"}, {}, "unknown device 'gpu'"),
        ({"encoder_params": {"nope": 1}}, {}, "mlp has no hyperparameter 'nope'"),
        ({"method": "dllp", "pretraining_params": {"nope": 1}}, {}, "pretraining has no hyperparameter 'nope'"),
        ({"validation": 1.5}, {}, "between 0 and 1, got 1.5"),
        ({}, {"X": FRAME["age"].to_numpy()}, r"rows and columns, got an array of shape \(60,\)"),
        ({}, {"X": FRAME.assign(age=np.inf)}, "^X: column 'age' contains an infinite value"),
        ({}, {"X": FRAME.set_axis(["a", "a", "b", "c"], axis=1)}, "two columns called 'a'"),
        ({"method": "supervised-gbdt"}, {}, "needs labels of rows"),
        ({"method": "dllp", "encoder": "mpl"}, {}, "unknown encoder 'mpl'. Did you mean mlp"),
        ({"method": "dllp"}, {"counts": TABLE[:3].reindex(TABLE.index)}, "at least 4 bags with known counts.* got 3"),
        ({"random_state": None}, {}, "random_state must be a whole number from 0, got None"),
        ({"method": "dllp", "pretraining": "bags"}, {}, "one of none, self, bag, self.bag, got 'bags'"),
        ({"method": "count-gbdt", "pretraining": "bag"}, {}, "'count-gbdt' has no encoder"),
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
        (lambda m: m.predict(FRAME.assign(age="old")), "'age' must contain numbers.* 'old'"),
        (lambda m: m.predict(FRAME.assign(owns=FRAME["owns"].astype(int))), "'owns' must .* got 1"),
        (lambda m: m.predict_proba(FRAME, np.arange(60)), r"look like 0, but fit saw labels like 'd00'"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE.rename(columns={1: 2})), r"must be of the classes \[0, 1\]"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE + 1), r"6 of 6 bags.*NaN"),
        (lambda m: m.assign(FRAME, BAGS, counts=TABLE[1:]), r"^1 of 6 bags .* no counts.* NaN\.$"),
        (lambda m: m.predict_proba(FRAME, pd.DataFrame({"bag": BAGS})[::-1]), "bags.loc"),
        (lambda m: m.assign(FRAME[BAGS > "d00"], BAGS[BAGS > "d00"], counts=TABLE), "1 of 6 bags .* has no rows"),
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
        (np.arange(7, 47), True),
        (np.random.default_rng(0).permutation(40), True),
        (np.cumsum(np.arange(1, 41))[::-1], True),  # gaps, in descending order
        ([f"person {number}" for number in range(40)], True),
        (np.random.default_rng(0).permutation(40) ** 2, False),  # distinct whole numbers in any order
        (np.arange(40) / 8, False),
        (np.arange(40) // 2, False),
        (["a", "b"] * 20, False),
        ([f"p{number // 2}" for number in range(240)], True),
        ([f"p{number // 3}" for number in range(240)], False),
        ([f"{1000 + 7 * number:,}" for number in range(240)], False),  # a number written as text
    ],
)
def test_identifier_column_is_warned_of(values: Any, told: bool) -> None:
    frame = pd.DataFrame({"age": np.random.default_rng(1).integers(0, 9, len(values)), "what": values})
    with warned("identifier", "'what'") if told else silent("identifier"):
        LLPClassifier("bag-share").fit(frame, np.arange(len(values)) % 4, counts=[3, 4, 5, 6])


def test_pretraining_works_with_suppressed_bags(tmp_path: Path) -> None:
    counts, found = TABLE[1:].reindex(TABLE.index), []
    for tasks, params in ("none", None), ("self+bag", {"epochs": 2}):
        model = LLPClassifier("dllp", epochs=2, ensemble=2, pretraining=tasks, pretraining_params=params)
        found.append(model.fit(FRAME, BAGS, counts=counts).predict_proba(FRAME))
        assert np.isfinite(found[-1]).all()
    assert not np.allclose(found[0], found[1], atol=1e-3)
    assert np.array_equal(reloaded(model, tmp_path).predict_proba(FRAME), found[-1])


def test_networks_predict_on_requested_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def noted(name: str) -> torch.device:
        asked.append(name)
        return pick_device("cpu")

    monkeypatch.setattr("llpbench.owndata.fitting.pick_device", noted)
    model = fitted("dllp", epochs=1, device="cpu")
    expected = model.predict_proba(FRAME)
    assert set(asked) == {"cpu"}
    fitted(device="cuda")  # a direct method needs no device
    loaded = reloaded(model, tmp_path)
    assert b"device" not in zipfile.ZipFile(tmp_path / "model.skops").read("schema.json")
    asked.clear()
    assert np.array_equal(loaded.predict_proba(FRAME), expected)
    assert {loaded.device, *asked} == {"auto"}


@pytest.mark.parametrize(("method", "params"), [("bag-mean-linear", {}), ("count-gbdt", TREES)])
def test_no_rows_give_no_predictions(method: str, params: dict[str, Any]) -> None:
    model = fitted(method, params=params)
    shapes = [model.predict_proba(FRAME[:0], bags).shape for bags in (None, BAGS[:0])]
    assert [*shapes, model.predict(FRAME[:0]).shape] == [(0, 2), (0, 2), (0,)]
    with refusal("lacks 1 column"):
        model.predict(FRAME[:0].drop(columns="age"))


def test_failed_refit_keeps_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    before, expected = dict(model.left_out_), model.predict_proba(FRAME)
    with refusal("got 0 of 6"):
        model.fit(FRAME, BAGS, counts=TABLE + 1, impossible="suppress")
    monkeypatch.setattr(METHODS.get("bag-mean-linear"), "fit", lambda *_: lambda rows: np.full((len(rows[0]), 2), 1.6))
    with refusal(r"'bag-mean-linear' .*predictions must be in \[0, 1\]"):
        model.fit(FRAME, BAGS, counts=TABLE)
    assert model.left_out_ == before
    assert np.array_equal(model.predict_proba(FRAME), expected)

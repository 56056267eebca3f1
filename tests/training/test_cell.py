"""Cells: what their ids depend on, and hyperparameters from text."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from llpbench.core.cell import Cell, Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.training.specification import make_cell


def test_an_id_is_the_hash_of_the_specification_alone() -> None:
    cell = make_cell("dllp", "adult", bag_size=256, encoder="mlp")
    params = list(cell.params.items())
    random.Random(0).shuffle(params)
    assert replace(cell, params=dict(params)).id == cell.id
    assert len(cell.id) == 16
    assert json.loads(json.dumps(cell.spec)) == cell.spec


def test_ids_are_pinned() -> None:
    """A change here orphans published results: it must be meant."""
    cell = Cell("m", "d", "ordered", 256, "saint", {"a": 1.0}, {"dim": 32}, "none", {}, Protocol())
    assert cell.id == "664b798daa06de5b"


def test_precision_belongs_to_a_specification_only_where_it_is_not_float32() -> None:
    cell = make_cell("dllp", "adult", bag_size=256, encoder="mlp")
    fast = replace(cell, precision="bfloat16")
    assert "precision" not in cell.spec
    assert fast.spec == {**cell.spec, "precision": "bfloat16"}
    assert fast.id != cell.id
    assert str(fast) == "dllp mlp bfloat16 on adult ordered 256"
    for each in (cell, fast, make_cell("bag-mean-linear", "adult", bag_size=64)):
        assert Cell.of(each.spec).id == each.id
        assert Cell.of(each.spec).precision == each.precision


def test_an_ensemble_belongs_to_a_specification_where_it_has_several_members() -> None:
    cell = make_cell("dllp", "adult", bag_size=256, encoder="mlp")
    five = replace(cell, ensemble=5)
    assert five.spec == {**cell.spec, "ensemble": 5}
    assert str(five) == "dllp mlp x 5 on adult ordered 256"
    assert Cell.of(five.spec) == five


@pytest.mark.parametrize(
    "change",
    [
        {"bag_size": 64},
        {"bagging": "random"},
        {"encoder": "saint"},
        {"protocol": Protocol(epochs=5)},
        {"params": {"dropout": 0.2}},
    ],
)
def test_whatever_decides_a_result_changes_the_id(change: dict[str, object]) -> None:
    settings: dict[str, object] = {"bag_size": 256, "encoder": "mlp"}
    changed = make_cell("dllp", "adult", **{**settings, **change})  # type: ignore[arg-type]
    assert changed.id != make_cell("dllp", "adult", **settings).id  # type: ignore[arg-type]


def test_every_hyperparameter_is_in_the_specification() -> None:
    saint = make_cell("dllp", "adult", bag_size=256, encoder="saint")
    assert saint.params == {"learning_rate": 1e-4, "weight_decay": 0.01, "dropout": 0.1, "hidden": 256}
    assert saint.encoder_params["depth"] == 6
    mlp = make_cell("dllp", "adult", bag_size=256, encoder="mlp", params={"hidden": "128"})
    assert mlp.params == {"learning_rate": 1e-3, "weight_decay": 0.01, "dropout": 0.1, "hidden": 128}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"learning_rat": 1}, "Did you mean learning_rate?"),
        ({"dropout": 0.15}, "dllp.dropout must be one of 0.0, 0.1, 0.2, 0.3, got 0.15"),
        ({"learning_rate": "fast"}, "dllp.learning_rate must be a number"),
        ({"weight_decay": "nan"}, "dllp.weight_decay must be a number"),
    ],
)
def test_impossible_hyperparameters(params: dict[str, object], message: str) -> None:
    with pytest.raises(LLPBenchError, match=message.replace("?", r"\?")):
        make_cell("dllp", "adult", bag_size=256, params=params)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("dropout", "0.10", 0.1), ("ramp", "none", None), ("ramp", "100", 100), ("generator", "greedy", "greedy")],
)
def test_choices_may_be_written_as_texts(name: str, text: str, value: object) -> None:
    cell = make_cell("tabllp-bdc", "adult", bag_size=256, encoder="mlp", params={name: text})
    assert cell.params[name] == value
    assert type(cell.params[name]) is type(value)


@pytest.mark.parametrize(("text", "value"), [("true", True), (True, True)])
def test_switches_may_be_written_as_texts(text: object, value: bool) -> None:
    given = {"pretraining": "bag", "pretraining_params": {"projection": text}}
    cell = make_cell("dllp", "adult", bag_size=256, encoder="mlp", **given)  # type: ignore[arg-type]
    assert cell.pretraining_params["projection"] is value

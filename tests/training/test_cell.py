"""Cells: what their ids depend on, and hyperparameters from text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from llpbench.core.cell import Cell, Protocol
from llpbench.training.specification import make_cell


def cell_of(method: str = "dllp", **changes: Any) -> Cell:
    settings: dict[str, Any] = {"bag_size": 256, "encoder": "mlp", **changes}
    return make_cell(method, "adult", **settings)


def test_cell_id_is_hash_of_specification() -> None:
    cell = cell_of()
    assert replace(cell, params=dict(reversed([*cell.params.items()]))).id == cell.id
    assert len(cell.id) == 16
    assert json.loads(json.dumps(cell.spec)) == cell.spec
    changes: dict[str, Any] = {"bag_size": 64, "bagging": "random", "encoder": "saint", "protocol": Protocol(epochs=5)}
    for name, value in {**changes, "params": {"dropout": 0.2}}.items():
        assert cell_of(**{name: value}).id != cell.id


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"precision": "bfloat16"}, "dllp mlp bfloat16 on adult ordered 256"),
        ({"ensemble": 5}, "dllp mlp x 5 on adult ordered 256"),
        ({"numbers": "scores"}, "dllp mlp numbers=scores on adult ordered 256"),
        ({"average": "half:30"}, "dllp mlp average=half:30 on adult ordered 256"),
    ],
)
def test_specification_omits_default_later_options(change: dict[str, Any], text: str) -> None:
    cell = cell_of()
    other = replace(cell, **change)
    assert not change.keys() & cell.spec.keys()
    assert other.spec == {**cell.spec, **change}
    assert other.id != cell.id
    assert str(other) == text
    assert Cell.of(other.spec) == other
    assert Cell.of(cell.spec) == cell


def test_cell_ids_are_pinned() -> None:
    """A change here orphans published results: it must be meant."""
    cell = Cell("m", "d", "ordered", 256, "saint", {"a": 1.0}, {"dim": 32}, "none", {}, Protocol())
    assert cell.id == "664b798daa06de5b"


def test_specification_has_every_hyperparameter() -> None:
    saint = cell_of(encoder="saint")
    assert saint.params == {"learning_rate": 1e-4, "weight_decay": 0.01, "dropout": 0.1, "hidden": 256}
    assert saint.encoder_params["depth"] == 6
    mlp = cell_of(params={"hidden": "128"})
    assert mlp.params == {"learning_rate": 1e-3, "weight_decay": 0.01, "dropout": 0.1, "hidden": 128}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("dropout", "0.10", 0.1), ("ramp", "none", None), ("ramp", "100", 100), ("generator", "greedy", "greedy")],
)
def test_hyperparameters_are_read_from_text(name: str, text: str, value: object) -> None:
    cell = cell_of("tabllp-bdc", params={name: text})
    assert (cell.params[name], type(cell.params[name])) == (value, type(value))
    for switch in ("true", True):
        cell = cell_of(pretraining="bag", pretraining_params={"projection": switch})
        assert cell.pretraining_params["projection"] is True

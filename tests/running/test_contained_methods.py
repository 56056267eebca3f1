"""A method that changes the state of its process changes no result of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import timeless
from registries import as_they_were
from test_runner import Silent

from llpbench.core.record import Record
from llpbench.running import runner
from llpbench.running.settings import resolve

CARELESS = '''
import random
import warnings

import numpy as np
import torch

from llpbench import DirectMethod, register_method


@register_method("careless", reference="Doe 2026")
class Careless(DirectMethod):
    """The overall shares, and no manners."""

    def fit(self, train, schema, rng):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(3)
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return lambda rows: np.tile(train.prior, (len(rows.numeric), 1))
'''
OTHERS = "bag-mean-linear,llp-vat,dllp"


def run(plugin: Path, careless: Path, out: Path, methods: str, executor: str) -> tuple[list[Record], list[str]]:
    """The records of a run, the careless method's left out, and what was said."""
    display = Silent()
    given = {"datasets": "tiny", "methods": methods, "bag-sizes": "8", "seeds": "2", "epochs": "3", "encoders": "mlp"}
    files = {"plugin": (str(plugin), str(careless)), "out": str(out)}
    with as_they_were():
        summary = runner.run(resolve({**given, **files, "executor": executor}), display)
    records = summary.contents.records.values()
    assert {record["status"] for record in records} == {"ok"}
    return [record for record in records if record["spec"]["method"] != "careless"], display.said


@pytest.fixture
def careless(tmp_path: Path) -> Path:
    path = tmp_path / "careless.py"
    path.write_text(CARELESS)
    return path


def test_careless_plugin_does_not_change_other_results(plugin: Path, careless: Path, tmp_path: Path) -> None:
    """Every executor does its jobs in the processes of this one."""
    undisturbed, shown = run(plugin, careless, tmp_path / "alone", OTHERS, "debug")
    assert not [line for line in shown if " changed " in line]
    records, shown = run(plugin, careless, tmp_path / "out", f"careless,{OTHERS}", "inline")
    assert len(records) == 6
    assert timeless(records) == timeless(undisturbed)
    lines = [line for line in shown if " changed " in line]
    assert len(lines) == 1
    assert "careless" in lines[0]

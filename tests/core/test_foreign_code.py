"""State, texts and errors of other packages and plugins do no harm."""

from __future__ import annotations

import csv
import io
import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from bench import python

from llpbench.core import global_state
from llpbench.core.global_state import restored
from llpbench.core.registry import load_plugin
from llpbench.core.text import fault, frame_as_csv, one_line

CHANGES: dict[str, Callable[[], object]] = {
    "torch's default dtype": lambda: torch.set_default_dtype(torch.float64),
    "torch's default device": lambda: torch.set_default_device("meta"),
    "torch's grad mode": lambda: torch.set_grad_enabled(False),
    "torch's number of threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "torch's deterministic mode": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "cuDNN's flags": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "torch's precision of matrix products": lambda: torch.set_float32_matmul_precision("medium"),
    "torch's autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "numpy's handling of floating-point errors": lambda: np.seterr(all="raise"),
    "scikit-learn's configuration": lambda: sklearn.set_config(transform_output="pandas"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_changed_state_is_named_and_restored(name: str) -> None:
    with restored() as outside:
        with restored() as changed:
            CHANGES[name]()
        assert changed == [name]
    assert outside == [], "nothing is left of it"


def test_state_is_restored_after_a_failure() -> None:
    filters = [*warnings.filters]
    with suppress(KeyError), restored() as changed:
        torch.set_default_dtype(torch.float64)
        warnings.simplefilter("error")
        raise KeyError
    assert changed == ["torch's default dtype"]
    assert torch.get_default_dtype() == torch.float32
    assert warnings.filters == filters


PLUGIN = """
import numpy, torch, warnings
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
numpy.seterr(all="raise")
"""

IMPORTED = """
import sys
from llpbench.core.registry import load_plugin
assert "torch" not in sys.modules
load_plugin(sys.argv[1])
import numpy, torch
print(torch.get_default_dtype(), torch.is_grad_enabled(), numpy.geterr()["over"])
"""


def test_state_changed_by_plugin_import_is_restored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "careless.py"
    path.write_text(PLUGIN)
    with restored() as changed, caplog.at_level(logging.WARNING, "llpbench"):
        load_plugin(path)
    assert changed == []
    assert "careless.py changed torch's default dtype, torch's grad mode" in caplog.text
    assert len(global_state.by_import["llpbench_plugin_careless"]) == 3
    done = python(IMPORTED, path)
    assert done.stdout == "torch.float32 True warn\n", "also where it is the first to import torch"
    assert "careless.py changed" in done.stderr


class SpeechlessError(ValueError):
    def __str__(self) -> str:
        raise TypeError  # as errors of liac-arff do


def test_foreign_text_is_a_line_that_cannot_command_a_terminal() -> None:
    assert one_line(SpeechlessError("x")) == fault(SpeechlessError("x")) == "SpeechlessError"
    assert one_line("a\n\x1b[31m\u202eb\x00") == "a [31m b"
    assert len(one_line("x" * 10_000)) == 300


FORMULAS = ["=1+1", "+cmd", "-x", "@sum", "\t=1", "\r=1", "\n=1", "＝1"]
HARMLESS = ["-5", "+3e-2", "-1,5", "-,5", "-", "a=b", "", "plain"]


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_fields_and_headings_are_no_formulas(text: str) -> None:
    frame = pd.DataFrame({text: [text, None], "kind": pd.Categorical([text, "b"]), "n": [-1.5, np.nan]})
    heading, row = list(csv.reader(io.StringIO(frame_as_csv(frame), newline="")))[:2]
    assert heading == [f"'{text}", "kind", "n"]
    assert row == [f"'{text}", f"'{text}", "-1.5"]


def test_harmless_csv_text_is_unchanged_and_a_carriage_return_starts_no_row() -> None:
    frame = pd.DataFrame({"text": HARMLESS, "number": range(len(HARMLESS))})
    assert frame_as_csv(frame) == frame.to_csv(index=False)
    frame = pd.DataFrame({"text": ["a\r=1", "b"]})
    assert list(csv.reader(io.StringIO(frame_as_csv(frame), newline=""))) == [["text"], ["a\r=1"], ["b"]]

"""Examples of the public docstrings: every function and class that users call has some, and they run."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import llpbench

VALUES = {
    *("BaggedRows", "Bags", "FloatArray", "IntArray", "Rows", "Schema", "Table", "LLPBenchError", "losses"),
    *("Member", "Method", "MethodParams", "DirectParams", "Now", "Pairs", "Phase", "Reports", "Stage", "Model"),
    *("CrossTable", "Encoder", "Encoding", "Predictor", "Network", "Random", "OpenML", "Parquet", "Results"),
    *("register_bagging", "register_dataset", "register_encoder", "register_method", "register_suite"),
}
"""names that users do not call, or whose examples are whole files (`docs/author.md`, executed by `test_docs.py`)"""

CALLED = sorted({*llpbench.__all__} - VALUES)


def examples(name: str, target: Any) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(recurse=True).find(target, name, module=False, globs={})
    return [each for each in found if each.examples]


@pytest.mark.parametrize("name", CALLED)
def test_public_interface_has_runnable_examples(name: str) -> None:
    assert examples(name, getattr(llpbench, name)), f"llpbench.{name} lacks a section Examples"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    shown: list[str] = []
    for each in examples(name, getattr(llpbench, name)):
        runner.run(each, out=shown.append)
    assert runner.failures == 0, "".join(shown)

"""The front door: one import line gives what authors and notebooks need, and costs nothing until it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest
from repository import ROOT

import llpbench

NAMES = {name: place for place, names in llpbench._PLACES.items() for name in names}


def test_import_is_quick_and_loads_no_heavy_library() -> None:
    code = """
import sys, time
start = time.process_time()  # of this process: what others do meanwhile is no fault of its own
import llpbench
print(time.process_time() - start, *[name for name in ("torch", "pandas", "numpy", "click") if name in sys.modules])
"""

    def seconds() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        took, *heavy = done.stdout.split()
        assert heavy == []
        return float(took)

    assert any(seconds() <= 0.1 for _ in range(3))


def test_lazy_names_resolve_to_their_definitions() -> None:
    for name in NAMES:
        place = f"llpbench.{NAMES[name]}"
        expected = getattr(importlib.import_module(place), name, None) or importlib.import_module(f"{place}.{name}")
        assert getattr(llpbench, name) is expected
    with pytest.raises(AttributeError, match="no attribute 'Methods'"):
        _ = llpbench.Methods  # type: ignore[attr-defined]


def test_completion_offers_public_names_only() -> None:
    assert {*dir(llpbench)} == {*NAMES, "__version__"}
    assert {*llpbench.__all__} == NAMES.keys()
    folders = {path.name for path in (ROOT / "llpbench").iterdir() if path.is_dir()} | {"methods", "datasets"}
    assert not folders & NAMES.keys()


def test_type_checkers_see_same_names() -> None:
    tree = ast.parse((ROOT / "llpbench" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    told = {
        alias.name: str(node.module).removeprefix("llpbench.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == NAMES

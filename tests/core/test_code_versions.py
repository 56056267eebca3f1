"""Versions of code: declared ones, hashes of plugins' files, hashes of notebook cells."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, ENCODERS, METHODS, Entry, Registry

TEXT = "class Mine:\n    def loss(self, x):\n        return x\n"


def entry_of(target: type, **facts: object) -> Entry:
    return Entry("method", "mine", "", facts, "here", target.__module__, target)


def in_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """An entry whose class is defined in a file."""
    module = ModuleType(f"module_of_{path.stem}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return entry_of(type("Mine", (), {"__module__": module.__name__}))


def in_notebook(*cells: str) -> str | None:
    """The version of the class `Mine` in a notebook with these cells."""
    module = ModuleType("__notebook__")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__notebook__", module)
        for number, cell in enumerate(cells):
            name = f"<cell {number}>"
            linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
            exec(compile(cell, name, "exec"), module.__dict__)
        return entry_of(module.Mine).version


@pytest.mark.parametrize("registry", [METHODS, ENCODERS, BAGGINGS], ids=lambda registry: registry.kind)
def test_every_built_in_entry_declares_a_version(registry: Registry) -> None:
    assert all((entry.version or "").isdigit() for entry in registry.entries())


def test_declared_version_and_checksum_come_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(TEXT)
    entry = in_file(tmp_path / "mine.py", monkeypatch)
    entry.facts = {"version": 3}
    assert entry.version == "3"
    entry.facts = {"version": None, "sha256": "0123456789abcdef" * 4}
    assert entry.version == "0123456789abcdef"


def test_plugin_file_counts_byte_by_byte_as_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"a": TEXT, "b": TEXT, "c": f"{TEXT}# a comment\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    a, b, c = (in_file(tmp_path / f"{name}.py", monkeypatch) for name in "abc")
    before = a.version
    assert before == b.version != c.version
    assert str(before).startswith("file:")
    (tmp_path / "a.py").write_text("edited = True\n")
    assert a.version == before, "the edit came after the class was loaded"


def test_notebook_class_has_the_hash_of_its_cell() -> None:
    first = in_notebook("RATE = 2\n", TEXT)
    assert str(first).startswith("cell:")
    assert in_notebook("RATE = 2\n", TEXT) == first
    assert in_notebook("RATE = 2\n", TEXT.replace("return x", "return 2 * x")) != first
    decorated = f"from dataclasses import dataclass\n@dataclass(frozen=True)\n{TEXT}    width: int = 8\n"
    assert in_notebook(decorated) != in_notebook(decorated.replace("8", "9"))


@pytest.mark.parametrize("version", [0, -1, "2", 1.5, True])
def test_version_must_be_a_positive_whole_number(version: object) -> None:
    with pytest.raises(LLPBenchError, match="version of encoder 'mine' must be a whole number from 1"):
        ENCODERS.register("mine", version=version)

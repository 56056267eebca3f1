"""Entries of a registry, read from the source of a package's files without importing them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llpbench.core.errors import LLPBenchError

FAMILIES = ("floor", "direct", "classical", "neural", "pseudo-label", "control", "ceiling")
"""families of methods, in the order of lists"""


@dataclass
class Entry:
    """One registered name: its location, the facts in its decorator, and the object once it is imported."""

    kind: str
    name: str
    summary: str
    """first line of the docstring"""
    facts: Mapping[str, Any]
    """keyword arguments of the decorator, and defaults"""
    where: str
    """file:line"""
    module: str
    target: Any = None
    local: bool = False
    """whether other processes lack the entry: it is defined in a notebook, program or module that is no plugin"""

    @property
    def family(self) -> str:
        """Family of a method, one of `FAMILIES`: as declared, or its role or kind; "" for other entries."""
        facts = self.facts
        return str(facts["family"] or facts["role"] or facts["kind"]) if self.kind == "method" else ""

    @property
    def file(self) -> str | None:
        """File that registers the entry, as named in tracebacks; None if there is none or it is not yet imported."""
        return getattr(sys.modules.get(self.module), "__file__", None)

    def load(self) -> Any:
        """Return the registered class or function. The first call imports its module."""
        if self.target is None:
            importlib.import_module(self.module)
        if self.target is None:
            raise LLPBenchError(f"importing {self.module} did not register {self.kind} {self.name!r} ({self.where})")
        return self.target


def modules_of(package: str) -> Iterator[tuple[str, Path]]:
    """Yield name and file of the public modules of a package, in alphabetical order, without importing them."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LLPBenchError(f"package {package} is not installed completely. Reinstall llpbench.")
    for folder in spec.submodule_search_locations:
        for file in sorted(Path(folder).glob("*.py")):
            if not file.stem.startswith("_"):
                yield f"{package}.{file.stem}", file


def read_entries(module: str, file: Path, kind: str) -> list[Entry]:
    """Return the entries that a module registers, read from its source.

    Returns none if the file mentions the decorator anywhere but in an import and in `@register_KIND("name", ...)` with
    literals before a class or function. Such a file must be imported. So must a method whose base class is another.
    """
    text, entries = file.read_text(encoding="utf-8"), []
    for node in ast.parse(text).body:
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == f"register_{kind}":
                try:
                    (name,) = map(ast.literal_eval, call.args)
                    facts = {str(fact.arg): ast.literal_eval(fact.value) for fact in call.keywords}
                    if kind == "method":
                        facts["kind"] = kind_of(getattr(base, "id", "") for base in node.bases)  # type: ignore[attr-defined]
                except ValueError:
                    return []
                summary = first_line(ast.get_docstring(node))  # type: ignore[arg-type]
                entries.append(Entry(kind, name, summary, facts, f"{file}:{node.lineno}", module))
    mentions = re.findall(rf"\bregister(?:_{kind})?\b", text)
    return entries if len(mentions) == len(entries) + 1 else []


def kind_of(bases: Iterable[str]) -> str:
    """Return `direct` or `neural`, depending on the base classes of a method. Raises `ValueError` for other classes."""
    kinds = {"DirectMethod": "direct", "Method": "neural"}
    found = [kinds[base] for base in bases if base in kinds]
    if not found:
        raise ValueError("no method")
    return found[0]


def first_line(doc: str | None) -> str:
    return (doc or "").strip().split("\n")[0]


def place_of(target: Any) -> str:
    code = getattr(target, "__code__", None)
    file = getattr(sys.modules.get(target.__module__), "__file__", target.__module__)
    return f"{file}:{code.co_firstlineno}" if code is not None else f"{file} ({target.__qualname__})"

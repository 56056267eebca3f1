"""Entries of a registry, read from the source of a package's files without importing them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
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
    """keyword arguments of the decorator; only literals if the file is not yet imported"""
    where: str
    """file:line"""
    module: str
    target: Any = None
    alone: bool = False
    """whether other processes do not have the entry

    True if it was defined in a notebook, or in a program or module that no plugin has loaded.
    """

    @property
    def family(self) -> str:
        """Family of a method, one of `FAMILIES`; "" for other entries.

        If the decorator names no family, it follows from the method's role, or from its kind.
        """
        if self.kind != "method":
            return ""
        facts = self.facts
        return str(facts["family"] or facts["role"] or facts["kind"])

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


def modules_of(package: str) -> Iterator[str]:
    """Yield dotted names of the public modules of a package, in alphabetical order, without importing them."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LLPBenchError(f"package {package} is not installed completely. Reinstall llpbench.")
    for folder in spec.submodule_search_locations:
        for file in sorted(Path(folder).glob("*.py")):
            if not file.stem.startswith("_"):
                yield f"{package}.{file.stem}"


def read_entries(module: str, kind: str) -> Iterator[Entry]:
    """Yield the entries that a module registers at its top level, read from its source.

    Yields nothing if an entry is registered in any form other than `@register_KIND("name", ...)`, if its name is not a
    text literal, or if the kind of a method depends on a base class in another file.
    """
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree, decorator, entries = ast.parse(Path(spec.origin).read_text(encoding="utf-8")), f"register_{kind}", []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        for call in node.decorator_list:
            plain = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == decorator
            if not plain or not isinstance(call, ast.Call):
                continue
            if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)):
                return
            facts = dict(_literals(call.keywords))
            if kind == "method":
                if not (bases := set(_bases(tree, node))) & {"Method", "DirectMethod"}:
                    return  # its base class is in another file
                facts["kind"] = kind_of(bases)
            entries.append(
                Entry(
                    kind=kind,
                    name=call.args[0].value,
                    summary=first_line(ast.get_docstring(node)),
                    facts=facts,
                    where=f"{spec.origin}:{node.lineno}",
                    module=module,
                )
            )
    spellings = (decorator, "register")  # "register" is the method of a registry
    uses = [node for node in ast.walk(tree) if getattr(node, "id", getattr(node, "attr", "")) in spellings]
    renamed = any(alias.name == decorator and alias.asname for node in ast.walk(tree) for alias in _aliases(node))
    if len(uses) == len(entries) and not renamed:
        yield from entries


def _aliases(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, ast.Import | ast.ImportFrom) else []


def _bases(tree: ast.Module, node: ast.AST) -> Iterator[str]:
    """Yield the names of a class's base classes, and of their base classes in the same file."""
    local = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        name = str(getattr(base, "id", getattr(base, "attr", "")))
        yield name
        yield from _bases(tree, local[name]) if name in local else ()


def kind_of(bases: Iterable[Any]) -> str:
    """Return `direct` or `neural`, depending on the base classes of a method."""
    return "direct" if "DirectMethod" in (getattr(base, "__name__", base) for base in bases) else "neural"


def _literals(keywords: list[ast.keyword]) -> Iterator[tuple[str, Any]]:
    for keyword in keywords:
        try:
            yield str(keyword.arg), ast.literal_eval(keyword.value)
        except ValueError:
            continue


def first_line(doc: str | None) -> str:
    return (doc or "").strip().split("\n")[0]


def place_of(target: Any) -> str:
    code = getattr(target, "__code__", None)
    file = getattr(sys.modules.get(target.__module__), "__file__", target.__module__)
    return f"{file}:{code.co_firstlineno}" if code is not None else f"{file} ({target.__qualname__})"

"""Canonical text of Python code without comments, docstrings, formatting or locations of imports.

`ast.dump` and `ast.unparse` differ between versions of Python. This text is the same in all supported versions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Imported(NamedTuple):
    """One imported name of an import statement."""

    module: str
    """module as written; "" in `from . import name`"""
    level: int
    """number of leading dots"""
    name: str
    """name imported from the module; "" for `import module`"""
    bound: str
    """name after `as`; "" if there is none"""


def canonical(tree: ast.AST, describe: Callable[[Imported], str]) -> str:
    """Return `tree` as text; `describe` returns the text of an import.

    Consecutive imports are sorted by their names, not by their modules, so moving a module does not change the order.
    """
    if isinstance(tree, ast.Constant):
        return f"{type(tree.value).__name__}:{tree.value!a}"
    if isinstance(tree, ast.JoinedStr):
        return f"(JoinedStr {' '.join(_pieces(tree, describe))})"
    fields = []
    for name, value in ast.iter_fields(tree):
        if name in ("ctx", "type_comment", "type_ignores", "kind"):
            continue
        text = _field(value, describe)
        if text:
            fields.append(f"{name}={text}")
    return f"({type(tree).__name__} {' '.join(fields)})"


def _field(value: object, describe: Callable[[Imported], str]) -> str:
    """Return a field of a node; "" if it is empty, since some versions of Python lack empty fields."""
    if value is None or value == []:
        return ""
    if isinstance(value, ast.AST):
        return canonical(value, describe)
    if not isinstance(value, list):
        return ascii(value)
    if isinstance(value[0], ast.stmt):
        texts = list(_statements(value, describe))
        return f"[{' '.join(texts)}]" if texts else ""
    return f"[{' '.join(_field(item, describe) or '-' for item in value)}]"


def _statements(body: Iterable[ast.stmt], describe: Callable[[Imported], str]) -> Iterator[str]:
    """Yield statements that have an effect, with consecutive imports sorted."""
    row: list[Imported] = []
    for statement in body:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue  # docstrings, texts under a field
        if isinstance(statement, ast.Import | ast.ImportFrom):
            row += imported(statement)
            continue
        yield from _sorted(row, describe)
        row = []
        yield canonical(statement, describe)
    yield from _sorted(row, describe)


def _sorted(row: list[Imported], describe: Callable[[Imported], str]) -> Iterator[str]:
    for each in sorted(row, key=lambda each: (each.name or each.module, each.bound)):
        yield f"({describe(each)})"


def imported(statement: ast.Import | ast.ImportFrom) -> list[Imported]:
    """Return the imported names of an import statement."""
    if isinstance(statement, ast.Import):
        return [Imported(alias.name, 0, "", alias.asname or "") for alias in statement.names]
    module, level = statement.module or "", statement.level
    return [Imported(module, level, alias.name, alias.asname or "") for alias in statement.names]


def _pieces(text: ast.JoinedStr, describe: Callable[[Imported], str]) -> Iterator[str]:
    """Yield the parts of an f-string with adjacent constants joined; versions of Python split them differently."""
    constant = ""
    for value in text.values:
        if isinstance(value, ast.Constant):
            constant += str(value.value)
            continue
        if constant:
            yield ascii(constant)
        constant = ""
        yield canonical(value, describe)
    if constant:
        yield ascii(constant)

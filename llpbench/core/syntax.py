"""Python code as a text in which only what it does counts: no comments, docstrings, formatting, or places of imports.

`ast.dump` and `ast.unparse` differ between versions of Python; this text is the same on all that are supported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Imported(NamedTuple):
    """One name that an import statement brings in."""

    module: str
    """as it is written; "" in `from . import name`"""
    level: int
    """number of leading dots"""
    name: str
    """what is taken from the module; "" for `import module`"""
    bound: str
    """`as NAME`; "" if there is none"""


def canonical(tree: ast.AST, describe: Callable[[Imported], str]) -> str:
    """`tree` as text. `describe` says what stands for an import; consecutive imports are in the order of their names,
    not of their modules, so that moving a module moves nothing here."""
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
    """A field of a node; "" if it is empty, so that fields that a version of Python lacks do not count."""
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
    """Statements that do something, imports in a row sorted."""
    row: list[Imported] = []
    for statement in body:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue  # docstrings, texts under a field, ...
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
    """What an import statement brings in, name by name."""
    if isinstance(statement, ast.Import):
        return [Imported(alias.name, 0, "", alias.asname or "") for alias in statement.names]
    module, level = statement.module or "", statement.level
    return [Imported(module, level, alias.name, alias.asname or "") for alias in statement.names]


def _pieces(text: ast.JoinedStr, describe: Callable[[Imported], str]) -> Iterator[str]:
    """The parts of an f-string; constants beside one another are one, whichever way a version of Python cuts them."""
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

"""Hashes of the source of registered objects. A result whose code has changed since is stale.

A hash covers the module that defines a class or function, and the *own modules* that it imports, recursively:

- files in its folder, and in other folders on `sys.path` that are not installed libraries
- modules of its distribution. In llpbench, these are only the contributed ones (`CONTRIBUTED`).
- the `__init__` of a package from which something is imported

A hash does not cover:

- the standard library and installed libraries (a record has their versions)
- the engine (`provenance.NUMERICS`). An import from the engine adds only the imported name to the hash, not its module,
  so moving engine modules makes no result stale.
- files that a module opens itself, and modules imported by a string (`importlib`)
- comments, docstrings, formatting, and names and locations of files (`core/syntax.py`)
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import linecache
import sys
import sysconfig
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from llpbench.core.entries import Entry
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS
from llpbench.core.syntax import Imported, canonical

CONTRIBUTED = {registry.package for registry in (METHODS, DATASETS, BAGGINGS, ENCODERS)}
"""packages whose modules are followed; everything else in llpbench is the engine"""


def cell_sources(method: str, dataset: str, bagging: str, encoder: str | None) -> dict[str, str | None]:
    """Return `sources` as in a record; options may follow the name of a bagging (`random:option=1`).

    Imports no further module. Raises `LLPBenchError` if a name is not registered.
    """
    return {
        "method": entry_hash(METHODS.entry(method)),
        "dataset": entry_hash(DATASETS.entry(dataset)),
        "bagging": entry_hash(BAGGINGS.entry(bagging.partition(":")[0])),
        "encoder": None if encoder is None else entry_hash(ENCODERS.entry(encoder)),
    }


def entry_hash(entry: Entry) -> str:
    """Return `source_hash` of a registered entry, even before it is imported."""
    if entry.target is not None:
        return source_hash(entry.target)
    spec = importlib.util.find_spec(entry.module)
    assert spec is not None
    assert spec.origin is not None
    return _Sources(_Module(entry.module, Path(spec.origin).resolve())).hash()


@cache
def source_hash(target: Any) -> str:
    """Return the hash of the source of a class or function, 16 hexadecimal digits.

    It is computed when the object is loaded, and cached: later edits do not affect the running code. For code typed
    into a notebook, the defining cell counts, and the cells of the functions and classes it names. Raises
    `LLPBenchError` if their text is not available.
    """
    file = getattr(sys.modules.get(target.__module__), "__file__", None)
    if file is not None and Path(file).is_file():
        return _Sources(_Module(target.__module__, Path(file).resolve())).hash()
    return _hash(sorted(_notebook_sources(target).values()))


class _Module(NamedTuple):
    """A module with its name and file."""

    name: str
    path: Path

    @property
    def package(self) -> str:
        """Package in which relative imports start."""
        return self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]


class _Sources:
    """A module and its imported modules, numbered by first use, so that their names do not count."""

    def __init__(self, root: _Module) -> None:
        self._root = root
        self._modules = [root]

    def hash(self) -> str:
        texts = []
        for module in self._modules:  # the list grows in the loop
            content = module.path.read_bytes()
            try:
                tree = ast.parse(content)
            except (SyntaxError, ValueError):  # a compiled file, or one for another Python version
                texts.append(hashlib.sha256(content).hexdigest())
            else:
                texts.append(canonical(tree, partial(self._describe, module)))
        return _hash(texts)

    def _describe(self, module: _Module, imported: Imported) -> str:
        """Return the text for an import: the number of an own module, the name from the engine, or the full import."""
        name = imported.module
        if imported.level:
            dots = "." * imported.level
            name = importlib.util.resolve_name(dots + name, module.package) if module.package else dots + name
        if imported.name:
            own = self._number(f"{name}.{imported.name}")
            if own is not None:
                return f"module {own} as {imported.bound or imported.name}"
        own = self._number(name)
        whole = f"import {imported.bound or name}" if not imported.name else f"{imported.name} as {imported.bound}"
        if own is not None:
            return f"{whole} from {own}"
        return f"{whole} from {'llpbench' if name.startswith('llpbench.') and imported.name else name}"

    def _number(self, name: str) -> int | None:
        """Return the number of an own module; None for any other module."""
        path = self._find(name)
        if path is None:
            return None
        known = [module.path for module in self._modules]
        if path in known:
            return known.index(path)
        self._modules.append(_Module(name, path))
        return len(known)

    def _find(self, name: str) -> Path | None:
        """Return the file of an own module; None for libraries, packages without a file, and missing modules."""
        top, _, rest = name.partition(".")
        if top == "llpbench":
            top = next((package for package in CONTRIBUTED if f"{name}.".startswith(f"{package}.")), "")
            rest = name.removeprefix(top).lstrip(".")
        if not top or top in sys.stdlib_module_names:
            return None
        place = _place(top) or _beside(top, self._root.path.parent)
        if place is None or not (top in CONTRIBUTED or self._is_own(top, place)):
            return None
        for part in rest.split(".") if rest else ():
            found = _beside(part, place) if place.is_dir() else None
            if found is None:
                return None
            place = found
        initial = place / "__init__.py"
        return place if place.is_file() else initial if initial.is_file() else None

    def _is_own(self, top: str, place: Path) -> bool:
        """Return whether a top-level module is not installed, or belongs to the distribution of the hashed module."""
        if not _is_installed(place):
            return True
        if not _is_installed(self._root.path) or self._root.name.startswith("llpbench."):
            return False
        mine = self._root.name.partition(".")[0]
        owners = importlib.metadata.packages_distributions()
        return top == mine or bool({*owners.get(top, ())} & {*owners.get(mine, ())})


def _place(top: str) -> Path | None:
    """Return the file or folder of a top-level module or package, without importing it."""
    try:
        spec = getattr(sys.modules.get(top), "__spec__", None) or importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.has_location and spec.origin else None


def _beside(name: str, folder: Path) -> Path | None:
    """Return the path of a package or module in a folder, including compiled ones."""
    if (folder / name).is_dir():
        return folder / name
    if (folder / f"{name}.py").is_file():
        return folder / f"{name}.py"
    return next((path for path in sorted(folder.glob(f"{name}.*")) if path.suffix in (".so", ".pyd")), None)


def _is_installed(path: Path) -> bool:
    """Return whether a file belongs to the standard library or to installed libraries."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or path.is_relative_to(
        Path(sysconfig.get_path("stdlib")).resolve()
    )


def _notebook_sources(target: Any) -> dict[str, str]:
    """Return the sources of the notebook cells that define `target` and all that it uses, by file; constants by name.

    For a class without functions, such as hyperparameters, the cell is unknown. Its declaration is used instead.
    """
    module = vars(sys.modules[target.__module__])
    found: dict[str, str] = {}
    waiting = [target]
    while waiting:
        value = waiting.pop()
        code = _code(value)
        if code is None and isinstance(value, type):
            found[value.__qualname__] = _declared(value)
            waiting += [base for base in value.__bases__ if _is_of(base, target)]
            continue
        lines = linecache.getlines(code.co_filename) if code is not None else []
        if code is None or not lines:
            raise LLPBenchError(
                f"the source of {target.__qualname__!r} is unknown, so its stale results could not be detected. "
                "Put it into a file, and load it with --plugin."
            )
        if code.co_filename in found:
            continue
        tree = ast.parse("".join(lines))
        found[code.co_filename] = canonical(tree, str)
        for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
            value = module.get(name)
            if _is_of(value, target) and name not in found:
                waiting.append(value)
            elif isinstance(value, bool | int | float | str | tuple):
                found[name] = f"{name}={value!a}"
    return found


def _is_of(value: Any, target: Any) -> bool:
    """Return whether `value` is a class or function of the module of `target`."""
    same = getattr(value, "__module__", None) == target.__module__
    return same and (isinstance(value, type) or _code(value) is not None)


def _declared(value: type) -> str:
    """Return bases, fields and constants of a class without functions."""
    try:
        types = get_type_hints(value, include_extras=True)
    except Exception:  # names that only a type checker knows
        types = vars(value).get("__annotations__", {})
    made = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    defaults = [(field.name, field.default, field.default_factory) for field in made]
    plain = {name: constant for name, constant in vars(value).items() if not name.startswith("__")}
    return f"{[base.__qualname__ for base in value.__bases__]} {types} {defaults} {plain}"


def _code(value: Any) -> Any:
    """Return the code object of a function, or of the first handwritten function of a class; None if there is none."""
    parts = vars(value) if isinstance(value, type) else {"": value}
    for name, part in parts.items():
        written = getattr(part, "__func__", None) or getattr(part, "fget", None) or part
        code = getattr(written, "__code__", None)
        if code is not None and not (name.startswith("__") and code.co_filename in ("<string>", dataclasses.__file__)):
            return code  # functions that `@dataclass` generates are not in any cell
    return None


def _hash(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

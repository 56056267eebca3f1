"""The registries: methods, datasets, suites of datasets, baggings and encoders by name.

Use a decorator on a class or function to add to the benchmark::

    @register_method("mine", reference="Doe 2026")
    class Mine(Method): ...

Files in `llpbench.methods` and `llpbench.encoders` import torch, which takes seconds. Their entries are therefore read
from the source, and a file is imported when it is used. `llpbench.datasets` is simply imported.

A plugin outside this repository is a module named by an entry point in the group `llpbench.plugins`, or a file given
with `--plugin file.py`.
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import hashlib
import importlib
import importlib.metadata
import importlib.util
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import explained_failure
from llpbench.core.global_state import restored
from llpbench.core.text import hint, one_line

FAMILIES = ("floor", "direct", "classical", "neural", "pseudo-label", "control", "ceiling")
"""families of methods, in the order of lists"""

_CHOICES = {"family": FAMILIES, "role": ("", "floor", "ceiling", "control"), "classes": ("multi", "binary")}
_TEXTS = ("reference", "code", "licence")
"""facts that must be one of several texts, and those that may be any text: results record them"""

DIGITS = 16
"""number of digits of a hash in a version"""


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

    @property
    def version(self) -> str | None:
        """Version of the code or data: "1", the start of a `sha256`, "file:HASH" or "cell:HASH".

        None for an entry of llpbench that declares neither, such as a dataset of OpenML. Raises `LLPBenchError` if the
        source of typed code is not available.
        """
        if self.facts.get("version") is not None:
            return str(self.facts["version"])
        if self.facts.get("sha256"):
            return str(self.facts["sha256"])[:DIGITS]
        return None if self.module.startswith("llpbench.") else _source_hash(self.target)

    def load(self) -> Any:
        """Return the registered class or function. The first call imports its module."""
        if self.target is None:
            importlib.import_module(self.module)
        if self.target is None:
            raise LLPBenchError(f"importing {self.module} did not register {self.kind} {self.name!r} ({self.where})")
        return self.target


@cache
def _source_hash(target: Any) -> str:
    """Return the hash of a class's or function's file, or of its notebook cell, as registration has found them."""
    file = getattr(module := sys.modules.get(target.__module__), "__file__", None)
    if file is not None and Path(file).is_file():
        content = vars(module).get("__content__") or Path(file).read_bytes()
        return f"file:{hashlib.sha256(content).hexdigest()[:DIGITS]}"
    parts = [target, *(vars(target).values() if isinstance(target, type) else ())]
    functions = (getattr(part, "__func__", part) for part in parts)
    names = (function.__code__.co_filename for function in functions if hasattr(function, "__code__"))
    text = next(filter(None, ("".join(linecache.getlines(name)) for name in names)), "")
    if not text:
        raise LLPBenchError(
            f"the source of {target.__qualname__!r} is unknown, so its stale results could not be detected. "
            "Put it into a file, and load it with --plugin."
        )
    return f"cell:{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"


def _modules_of(package: str) -> Iterator[tuple[str, Path]]:
    """Yield name and file of the public modules of a package, in alphabetical order, without importing them."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LLPBenchError(f"package {package} is not installed completely. Reinstall llpbench.")
    for folder in spec.submodule_search_locations:
        for file in sorted(Path(folder).glob("*.py")):
            if not file.stem.startswith("_"):
                yield f"{package}.{file.stem}", file


def _read_entries(module: str, file: Path, kind: str) -> list[Entry]:
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
                        facts["kind"] = _kind_of(getattr(base, "id", "") for base in node.bases)  # type: ignore[attr-defined]
                except ValueError:
                    return []
                summary = (ast.get_docstring(node) or "").partition("\n")[0]  # type: ignore[arg-type]
                entries.append(Entry(kind, name, summary, facts, f"{file}:{node.lineno}", module))
    mentions = re.findall(rf"\bregister(?:_{kind})?\b", text)
    return entries if len(mentions) == len(entries) + 1 else []


def _kind_of(bases: Iterable[str]) -> str:
    """Return `direct` or `neural`, depending on the base classes of a method. Raises `ValueError` for other classes."""
    kinds = {"DirectMethod": "direct", "Method": "neural"}
    found = [kinds[base] for base in bases if base in kinds]
    if not found:
        raise ValueError("no method")
    return found[0]


def _place_of(target: Any) -> str:
    code = getattr(target, "__code__", None)
    file = getattr(sys.modules.get(target.__module__), "__file__", target.__module__)
    return f"{file}:{code.co_firstlineno}" if code is not None else f"{file} ({target.__qualname__})"


T = TypeVar("T")

ENTRY_POINT_GROUP = "llpbench.plugins"
_MOST_LISTED = 10
"""an error lists all names if there are at most this many"""
_FAMILY = "family:"
"""prefix that selects the methods of a family, as in `family:classical`"""
SUITE, OPENML, OPENML_SUITE = "suite:", "openml:", "openml-suite:"
"""prefixes that select the datasets of a suite, a dataset of OpenML by number, and the datasets of an OpenML suite"""


@dataclass
class Registry:
    """All entries of one kind, by name. Facts are the keyword arguments of a decorator."""

    kind: str
    package: str
    """package with the files that register the built-in entries"""
    lazy: bool
    """whether to index the package's files from their source instead of importing them"""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """defaults of facts that a decorator omits"""
    derived: Callable[[Any], Mapping[str, Any]] = field(default=lambda _: {})
    """function that returns facts that follow from the registered object"""
    unlisted: Callable[[str], Entry | None] = field(default=lambda _: None)
    """function that returns the entry of a name that lists omit, such as `openml:31`; None for other names"""
    _entries: dict[str, Entry] = field(default_factory=dict)
    _indexed: bool = False

    def register(self, name: str, **facts: Any) -> Callable[[T], T]:
        """Return a decorator that registers a class or function under `name`.

        Raises `LLPBenchError` if the name is taken (naming both locations), if a fact is unknown for this kind of
        entry or has a value that results cannot record, or if the name cannot be used in commands or journals.
        """
        taken = name in ("", "default", "all", "pretraining") or not name.isprintable() or name != name.strip()
        if taken or set(name) & set(",*?[=:"):
            raise LLPBenchError(
                f"{self.kind} name {name!r} cannot be used: 'default', 'all', 'pretraining', commas, =, : and patterns "
                "(*, ?, [) have special meanings, and a name must be printable and not begin or end with a blank. "
                "Choose another name."
            )
        unknown = next((fact for fact in facts if self.defaults and fact not in self.defaults), None)
        if unknown is not None:
            raise LLPBenchError(
                f"{self.kind} {name!r} has the unknown argument {unknown!r}. {hint(unknown, self.defaults)}"
                f"Available: {', '.join(self.defaults)}."
            )
        version = facts.get("version", 1)
        if type(version) is not int or version < 1:
            raise LLPBenchError(f"version of {self.kind} {name!r} must be a whole number from 1, got {version!r}.")
        for fact, allowed in _CHOICES.items():
            if facts.get(fact, allowed[0]) not in allowed:
                expected = ", ".join(filter(None, allowed))
                raise LLPBenchError(f"{fact} of {self.kind} {name!r} must be one of {expected}, got {facts[fact]!r}.")
        for fact in _TEXTS:
            if not isinstance(facts.get(fact, ""), str):
                raise LLPBenchError(f"{fact} of {self.kind} {name!r} must be a text, got {facts[fact]!r}.")

        def decorate(target: T) -> T:
            facts_of = {**self.defaults, **facts, **self.derived(target)}
            place, module = _place_of(target), target.__module__
            summary = (target.__doc__ or "").strip().partition("\n")[0]
            entry = Entry(self.kind, name, summary, facts_of, place, module, target)
            entry.local = not (_loading or module.startswith("llpbench."))
            self._add(entry)
            with contextlib.suppress(LLPBenchError):
                _ = entry.version  # now, since the file may be edited before the entry is used
            return target

        return decorate

    def names(self) -> list[str]:
        """Return every registered name, built-in ones first, in alphabetical order."""
        return list(self._index())

    def entries(self) -> list[Entry]:
        """Return every entry, without importing those indexed from source."""
        return list(self._index().values())

    def entry(self, name: str) -> Entry:
        """Return the entry called `name`. Raises `LLPBenchError` with the nearest names if there is none."""
        entries = self._index()
        if name in entries:
            return entries[name]
        if (unlisted := self.unlisted(name)) is not None:
            return unlisted
        # datasets also have the short names of the paper, such as AD for adult
        by_code = {str(e.facts["code"]).lower(): e for e in entries.values() if "code" in e.facts}
        if name.lower() in by_code:
            return by_code[name.lower()]
        other = next((kind for kind, one in REGISTRIES.items() if one is not self and name in one.names()), None)
        known = f" ({'an' if other[0] in 'aeiou' else 'a'} {other} has this name)" if other else ""
        raise LLPBenchError(f"unknown {self.kind} {name!r}{known}. {self._suggest(name)}")

    def get(self, name: str) -> Any:
        """Return the class or function registered as `name`."""
        return self.entry(name).load()

    def select(self, pattern: str | Iterable[str]) -> list[str]:
        """Return names selected by comma-separated lists, globs (`"dllp,tabllp-*"`), `family:NAME`, `default`
        and `all`.

        Each name appears once, in the given order. `default` leaves out `extra` entries. Raises `LLPBenchError` if a
        part of the pattern selects nothing.
        """
        parts = pattern.split(",") if isinstance(pattern, str) else list(pattern)
        chosen: dict[str, None] = {}
        for part in (p.strip() for p in parts):
            if not part:
                continue
            if part in ("default", "all"):
                found = [entry.name for entry in self.entries() if part == "all" or not entry.facts.get("extra")]
            elif part.startswith(_FAMILY):
                found = self._of_family(part.removeprefix(_FAMILY))
            elif any(mark in part for mark in "*?["):
                found = fnmatch.filter(self.names(), part)
                if not found:
                    raise LLPBenchError(f"no {self.kind} matches {part!r}. {self._suggest(part)}")
            else:
                found = [self.entry(part).name]
            chosen.update(dict.fromkeys(found))
        if not chosen:
            raise LLPBenchError(f"no {self.kind} was named. {self._suggest('')}")
        return list(chosen)

    def _of_family(self, family: str) -> list[str]:
        names = [entry.name for entry in self.entries() if entry.family == family]
        if not names:
            families = list(dict.fromkeys(filter(None, (entry.family for entry in self.entries()))))
            known = f"Available: {', '.join(families)}." if families else "Only methods have families."
            raise LLPBenchError(f"no {self.kind} is of family {family!r}. {hint(family, families)}{known}")
        return names

    def _suggest(self, name: str) -> str:
        names, command = self.names(), f"llpbench list {self.kind}s"
        if len(names) > _MOST_LISTED:
            return f"{hint(name, names)}{command} prints all {len(names)}."
        return f"{hint(name, names)}Available: {', '.join(names)} ({command})."

    def _index(self) -> dict[str, Entry]:
        if not self._indexed:
            self._indexed = True
            for module, file in _modules_of(self.package):
                entries = _read_entries(module, file, self.kind) if self.lazy else []
                for entry in entries:
                    entry.facts = {**self.defaults, **entry.facts}
                    self._add(entry)
                if not entries:
                    importlib.import_module(module)
            # built-in entries by name, whatever was imported first; plugins follow
            built_in = sorted(name for name, one in self._entries.items() if one.module.startswith(f"{self.package}."))
            self._entries = {name: self._entries[name] for name in dict.fromkeys([*built_in, *self._entries])}
            if not _entry_points_read:
                _entry_points_read.append(True)
                _load_entry_points()
        return self._entries

    def _add(self, entry: Entry) -> None:
        if self.lazy and entry.module.startswith(f"{self.package}."):
            self._index()  # first, so that the imported file completes its indexed entry instead of adding a second one
        known = self._entries.get(entry.name)
        again = known is not None and _is_typed_again(known, entry)
        if known is not None and not again and (known.module != entry.module or known.target is not None):
            raise LLPBenchError(
                f"two {self.kind}s are called {entry.name!r}: {known.where} and {entry.where}. Rename one of them."
            )
        if known is None or again:
            self._entries[entry.name] = entry
        else:  # the file of an indexed entry has been imported, so all facts are known
            known.target, known.facts = entry.target, entry.facts


def _is_typed_again(known: Entry, entry: Entry) -> bool:
    """Return whether a notebook cell was executed again, perhaps edited: name and class are the same as before."""
    module = sys.modules.get(entry.module)
    if known.target is None or module is None or getattr(module, "__file__", None):
        return False
    return known.module == entry.module and known.target.__qualname__ == entry.target.__qualname__


def _kind_of_method(target: Any) -> Mapping[str, Any]:
    """Return the fact `kind`: `direct` or `neural`. Raises `LLPBenchError` if `target` is not a method.

    It compares names of base classes, since importing the classes would import torch.
    """
    try:
        return {"kind": _kind_of(base.__name__ for base in target.__mro__[1:])}
    except (AttributeError, ValueError):
        name = getattr(target, "__name__", repr(target))
        file = Path(getattr(sys.modules.get(target.__module__), "__file__", None) or target.__module__).name
        raise LLPBenchError(f"{name} in {file} must be a class that extends Method or DirectMethod.") from None


METHODS = Registry(
    "method",
    "llpbench.methods",
    lazy=True,
    # role: floor, control or ceiling, listed separately in leaderboards; classes: multi or binary;
    # family: `Entry.family`; extra: not part of `default`, so that new methods do not lengthen a default run
    defaults={"version": None, "role": "", "classes": "multi", "reference": "", "family": "", "extra": False},
    derived=_kind_of_method,
)
ENCODERS = Registry("encoder", "llpbench.encoders", lazy=True)
DATASETS = Registry("dataset", "llpbench.datasets", lazy=False)
BAGGINGS = Registry(
    "bagging",
    "llpbench.datasets",
    lazy=False,
    # keyed: the bag of a row depends on that row alone, so new rows have a bag
    defaults={"version": None, "keyed": False},
)
SUITES = Registry("suite", "llpbench.datasets", lazy=False)

REGISTRIES = {registry.kind: registry for registry in (METHODS, DATASETS, SUITES, BAGGINGS, ENCODERS)}

register_method = METHODS.register
register_encoder = ENCODERS.register
register_dataset = DATASETS.register
register_bagging = BAGGINGS.register
register_suite = SUITES.register


def add_dataset(name: str, about: str, **facts: Any) -> None:
    """Register a dataset whose frame is used as it is read. `about` has the place of a function's docstring."""

    def as_read(frame: T) -> T:
        return frame

    caller = sys._getframe(1)
    as_read.__doc__, as_read.__module__ = about, caller.f_globals["__name__"]
    # messages, relative paths and versions need the file that declares the dataset, not this one
    code = as_read.__code__.replace(co_filename=caller.f_code.co_filename, co_firstlineno=caller.f_lineno)
    as_read.__code__ = code
    register_dataset(name, **facts)(as_read)


_loaded_plugins: dict[str, dict[str, tuple[Path, bytes]]] = {}
"""modules that a plugin imported from its folder, with their files and contents, by path of the plugin"""
_entry_points_read: list[bool] = []
"""not empty after the first call of `_load_entry_points`, which takes long"""
_loading: list[str] = []
"""names of plugins that are being imported; worker processes can import what such a file registers"""


def load_plugin(path: str | Path, edited: bool = False) -> None:
    """Import a file that registers methods, datasets, baggings or encoders. It may be called again with the same file.

    `edited`: reload the file if it, or a file in its folder that it imports, has been edited. Use this only between
    runs: an edit during a run must not affect it.
    """
    path = Path(path).resolve()
    name = f"llpbench_plugin_{path.stem}"
    loaded = _loaded_plugins.get(str(path), {})
    if edited and any(file.is_file() and file.read_bytes() != content for file, content in loaded.values()):
        _forget(loaded)
        del _loaded_plugins[str(path)]
    if str(path) in _loaded_plugins:
        return
    with explained_failure(f"plugin {str(path)!r} cannot be read", "Give a Python file."):
        content = path.read_bytes()
    if name in sys.modules:
        raise LLPBenchError(f"two plugins are {path.name!r}: {sys.modules[name].__file__} and {path}. Rename one.")
    for plugin, modules in _loaded_plugins.items():
        for other, (file, _) in modules.items():
            twin = path.parent / file.relative_to(Path(plugin).parent)
            if twin.is_file() and twin != file and re.search(rf"\b(from|import) +{other}\b".encode(), content):
                raise LLPBenchError(f"two modules beside plugins are {other!r}: {file} and {twin}. Rename one.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise LLPBenchError(f"plugin {str(path)!r} cannot be imported. Give the path of a .py file.")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for modules beside the file
    before = set(sys.modules)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _importing(path.name, name, repr(str(path)), "Fix the file."):
            vars(module)["__content__"] = content  # for the version, even if the file is edited meanwhile
            exec(compile(content, path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        _forget(_beside(path, before))  # a fixed file registers them again
        raise
    files = {each: (file, file.read_bytes()) for each, file in _beside(path, before).items()}
    _loaded_plugins[str(path)] = files | {name: (path, content)}


def _load_entry_points() -> None:
    """Import the modules that installed packages name in the entry-point group `llpbench.plugins`."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        if point.value not in _loaded_plugins:
            _loaded_plugins[point.value] = {}
            what = f"{point.value!r} (entry point {point.name!r})"
            with _importing(point.value, point.module, what, "Fix or uninstall it."):
                importlib.import_module(point.module)


@contextlib.contextmanager
def _importing(plugin: str, module: str, what: str, remedy: str) -> Iterator[None]:
    """Import a plugin inside. Errors become one line, and changed global settings are reset."""
    _loading.append(module)
    try:
        with restored(f"plugin {plugin}", module):
            yield
    except (LLPBenchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise LLPBenchError(f"plugin {what} failed on import: {one_line(error)}. {remedy}") from error
    finally:
        _loading.remove(module)


def _beside(plugin: Path, before: set[str]) -> dict[str, Path]:
    """Return the files of the plugin and of modules in its folder that were not imported before."""
    places = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
    files = {name: Path(place).resolve() for name, place in places.items() if place}
    installed = {"site-packages", "dist-packages"}
    return {
        name: file
        for name, file in files.items()
        if file.is_file() and file.is_relative_to(plugin.parent) and installed.isdisjoint(file.parts)
    }


def _forget(modules: Iterable[str]) -> None:
    """Remove modules, their bytecode, and the entries they have registered."""
    for name in modules:
        bytecode = getattr(sys.modules.pop(name, None), "__cached__", None)
        if bytecode:  # Python reuses it if second and size of the source are unchanged, which an edit may leave
            with contextlib.suppress(OSError):
                Path(bytecode).unlink(missing_ok=True)
        for registry in REGISTRIES.values():
            registry._entries = {key: entry for key, entry in registry._entries.items() if entry.module != name}

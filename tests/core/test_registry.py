"""Registries: selection, suggestions, duplicates, plugins, versions, and listing without importing."""

from __future__ import annotations

import hashlib
import importlib.metadata
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from bench import refusal

from llpbench.core import registry
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS, Entry, Registry, load_plugin


def plugin(folder: Path, name: str, *lines: str, file: str = "plugin.py") -> Path:
    path = folder / file
    body = "\n".join(lines) or "pass"
    path.write_text(
        "from llpbench.core.method import Method\nfrom llpbench.core.registry import register_method\n"
        f"{body}\n@register_method({name!r}, reference='me')\nclass Mine(Method):\n    '''One line.\n\n    More.'''\n"
    )
    return path


@pytest.mark.parametrize("kind", list(registry.REGISTRIES))
def test_entries_read_from_source_equal_imported_ones(kind: str) -> None:
    for entry in registry.REGISTRIES[kind].entries():
        indexed = dict(entry.facts)
        assert entry.summary
        assert kind not in ("method", "encoder", "bagging") or (entry.version or "").isdigit()
        assert entry.load() is entry.target
        assert indexed.items() <= dict(entry.facts).items()
    if kind in ("method", "encoder"):
        package = registry.REGISTRIES[kind].package
        assert all(registry._read_entries(module, file, kind) for module, file in registry._modules_of(package))


def test_default_leaves_out_extras_and_families_cover_all_methods() -> None:
    extras = {entry.name for entry in METHODS.entries() if entry.facts["extra"]}
    assert {"mean-map", "inv-cal"} <= extras
    default = METHODS.select("default")
    assert {*default} == {*METHODS.names()} - extras
    assert len(default) == 22, "a default run does not grow by itself"
    families = [METHODS.select(f"family:{family}") for family in registry.FAMILIES]
    assert sorted(name for names in families for name in names) == sorted(METHODS.names())
    ends = ["bag-share", "bag-soft-label", "supervised", "supervised-gbdt"]
    assert METHODS.select("family:floor,family:ceiling") == ends


def test_selection_accepts_all_lists_and_globs() -> None:
    assert METHODS.select("all") == METHODS.select("*") == METHODS.names()
    assert METHODS.select("dllp, supervised*,dllp") == ["dllp", "supervised", "supervised-gbdt"]
    assert METHODS.select("*-linear") == ["bag-mean-linear", "bag-soft-label-linear", "count-linear"]
    assert DATASETS.select("AD,el") == ["adult", "electricity"]


@pytest.mark.parametrize(
    ("registry", "name", "hint"),
    [
        (METHODS, "dlpp", "Did you mean dllp"),
        (DATASETS, "adults", "Did you mean adult"),
        (BAGGINGS, "order", "Did you mean ordered"),
        (ENCODERS, "saintt", "Did you mean saint"),
        (METHODS, "mlp", r"unknown method 'mlp' \(an encoder has this name\)\."),
        (METHODS, "tabular-*", "no method matches"),
        (METHODS, "family:clasical", "of family 'clasical'. Did you mean classical"),
        (DATASETS, "family:neural", "Only methods have families"),
        (METHODS, "", "no method was named"),
        (METHODS, "zzz", "llpbench list methods"),
        (BAGGINGS, "zzz", "Available: .*random"),
    ],
)
def test_unknown_name_suggests_nearest(registry: Registry, name: str, hint: str) -> None:
    with pytest.raises(LLPBenchError, match=hint) as error:
        registry.select(name)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_rerun_notebook_cell_replaces_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__notebook__", notebook := ModuleType("__notebook__"))

    def execute(name: str, answer: int) -> None:
        cell = "from llpbench import register_method, Method\n@register_method('typed', reference='me')\n"
        exec(f"{cell}class {name}(Method):\n    'One line.'\n    answer = {answer}\n", notebook.__dict__)

    execute("Mine", 1)
    execute("Mine", 2)
    assert METHODS.get("typed").answer == 2
    with pytest.raises(LLPBenchError, match="two methods are called 'typed'"):
        execute("Other", 3)


UNPRINTABLE, RESERVED = ["", " ", "two\nlines", "bell\a"], ["all", "default", "pretraining", "suite:a"]


@pytest.mark.parametrize("name", [*UNPRINTABLE, *RESERVED, "a=b", "a,b", "dllp*", "what?", "[a]", " a", "a "])
def test_invalid_entry_names_are_refused(tmp_path: Path, name: str) -> None:
    with refusal(r"method name .* cannot be used"):
        load_plugin(plugin(tmp_path, name))


def test_version_of_plugin_is_hash_of_executed_content(tmp_path: Path) -> None:
    path = plugin(tmp_path, "mine", "from pathlib import Path", "Path(__file__).write_text('edited meanwhile')")
    executed = hashlib.sha256(path.read_bytes()).hexdigest()
    load_plugin(path)
    assert METHODS.entry("mine").version == f"file:{executed[: registry.DIGITS]}"


def test_edited_plugin_is_reloaded_outside_runs(tmp_path: Path) -> None:
    helper = tmp_path / "a_helper_beside_it.py"
    helper.write_text("WEIGHT = 1.0\n")
    path = plugin(tmp_path, "mine", f"from {helper.stem} import WEIGHT")
    load_plugin(path)
    first = METHODS.get("mine")
    load_plugin(path, edited=True)
    assert METHODS.get("mine") is first
    helper.write_text("WEIGHT = 2.25\n")
    load_plugin(path)  # as the workers of a run do
    assert METHODS.get("mine") is first
    load_plugin(path, edited=True)
    assert sys.modules[METHODS.get("mine").__module__].WEIGHT == 2.25
    path.write_text(path.read_text().replace("'mine'", "'renamed'"))
    load_plugin(path, edited=True)
    assert METHODS.names()[-1] == "renamed"
    assert "mine" not in METHODS.names()
    whole = path.read_text()
    path.write_text(whole + "1 / 0\n")
    with pytest.raises(LLPBenchError, match="ZeroDivisionError"):
        load_plugin(path, edited=True)
    assert "renamed" not in METHODS.names()
    path.write_text(whole)
    helper.write_text("WEIGHT = 30.5\n")  # what a failure has left must not stay
    load_plugin(path, edited=True)
    assert sys.modules[METHODS.get("renamed").__module__].WEIGHT == 30.5


def test_unknown_facts_and_duplicate_entries_are_refused(tmp_path: Path) -> None:
    path = plugin(tmp_path, "mine")
    path.write_text(path.read_text().replace("reference='me'", "refrence='me'"))
    with pytest.raises(LLPBenchError, match=r"argument 'refrence'\. Did you mean reference.*Available: version"):
        load_plugin(path)
    assert "mine" not in METHODS.names()
    for fact, value in ("reference", 2026), ("role", "baseline"), ("classes", "two"), ("family", "nets"):
        with pytest.raises(LLPBenchError, match=f"{fact} of method 'other' must be .*got"):
            METHODS.register("other", **{fact: value})
    with pytest.raises(LLPBenchError, match="licence of dataset 'other' must be a text, got None"):
        DATASETS.register("other", licence=None)
    with pytest.raises(LLPBenchError, match=r"two methods are called 'dllp': .*dllp\.py:\d+ and .*plugin\.py"):
        load_plugin(plugin(tmp_path, "dllp"))
    assert METHODS.get("dllp").__module__ == "llpbench.methods.dllp"
    (tmp_path / "other").mkdir()
    load_plugin(plugin(tmp_path, "one"))
    with pytest.raises(LLPBenchError, match=r"two plugins are 'plugin\.py'"):
        load_plugin(plugin(tmp_path / "other", "two"))
    (tmp_path / "a_helper.py").touch()
    (tmp_path / "other" / "a_helper.py").touch()
    load_plugin(plugin(tmp_path, "three", "import a_helper", file="three.py"))
    with pytest.raises(LLPBenchError, match=r"'a_helper'"):
        load_plugin(plugin(tmp_path / "other", "four", "import a_helper", file="four.py"))


def test_entry_points_of_installed_packages_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(tmp_path, "installed", file="an_installed_plugin.py")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_broken_plugin.py").write_text("raise RuntimeError('two\\nlines')")
    names = {"x": "an_installed_plugin", "broken": "a_broken_plugin"}
    points = [importlib.metadata.EntryPoint(*each, registry.ENTRY_POINT_GROUP) for each in names.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [p for p in points if p.group == group])
    with pytest.raises(LLPBenchError, match=r"entry point 'broken'\) failed on import: RuntimeError: two lines"):
        registry._load_entry_points()
    assert "installed" in METHODS.names()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that stands where the built-in methods do, with no file yet."""
    folder = tmp_path / "own_methods"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METHODS, "package", "own_methods")
    monkeypatch.setattr(METHODS, "_entries", {})
    monkeypatch.setattr(METHODS, "_indexed", False)
    yield folder
    for name in [name for name in sys.modules if name.startswith("own_methods")]:
        del sys.modules[name]


IMPORTS = """
from llpbench.core import registry
from llpbench.core.method import DirectMethod, Method
from llpbench.core.registry import register_method
"""
ALIAS = "from llpbench.core.registry import register_method as enter\n"


def kinds() -> dict[str, str]:
    return {entry.name: entry.facts["kind"] for entry in METHODS.entries()}


def test_method_kind_follows_base_class(package: Path) -> None:
    (package / "some.py").write_text(
        f"""{IMPORTS}
class Base(DirectMethod): 'Not registered.'
class Middle(Base): 'Nor this.'
@register_method("far", reference="me")
class Far(Middle): 'Direct, two classes away.'
@register_method("near", reference="me")
class Near(DirectMethod): 'Direct.'
@register_method("other", reference="me")
class Other(Near): 'Direct, since what it derives from is.'
@register_method("net", role="floor")
class Net(Method): 'Neural.'
"""
    )
    (package / "_base.py").write_text(f"{IMPORTS}\nclass Base(DirectMethod): 'Shared.'")
    mine = "from own_methods._base import Base\n@register_method('mine')\nclass Mine(Base): 'Mine.'"
    (package / "elsewhere.py").write_text(f"{IMPORTS}\n{mine}")
    expected = {"mine": "direct", "far": "direct", "near": "direct", "other": "direct", "net": "neural"}
    (package / "plain.py").write_text(f"{IMPORTS}\n@register_method('plain')\nclass Plain(Method): 'Plain.'")
    assert kinds() == {**expected, "plain": "neural"}
    assert "own_methods.plain" not in sys.modules, "it was read, not imported"
    METHODS.get("plain")
    assert kinds() == {**expected, "plain": "neural"}


@pytest.mark.parametrize(
    "lines",
    [
        f"{ALIAS}@enter('mine')\nclass Mine(DirectMethod): 'Mine.'",
        "@registry.register_method('mine')\nclass Mine(DirectMethod): 'Mine.'",
        "@register_method('mi' + 'ne')\nclass Mine(DirectMethod): 'Mine.'",
        "NAME = 'mine'\n@register_method(NAME)\nclass Mine(DirectMethod): 'Mine.'",
        "class Mine(DirectMethod): 'Mine.'\nregister_method('mine')(Mine)",
        "if True:\n    @register_method('mine')\n    class Mine(DirectMethod): 'Mine.'",
        "@registry.METHODS.register('mine')\nclass Mine(DirectMethod): 'Mine.'",
    ],
)
@pytest.mark.parametrize("beside", ["", "@register_method('plain')\nclass Plain(Method): 'Plain.'\n"])
def test_other_spelling_of_built_in_is_found(package: Path, lines: str, beside: str) -> None:
    (package / "some.py").write_text(f"{IMPORTS}\n{beside}{lines}\n")
    assert kinds() == ({"plain": "neural"} if beside else {}) | {"mine": "direct"}
    assert (METHODS.entry("mine").summary, METHODS.get("mine").__name__) == ("Mine.", "Mine")


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
    assert a.version == b.version != c.version
    assert str(a.version).startswith("file:")


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

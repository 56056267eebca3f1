"""The hash of a source: what it depends on, and what it does not."""

from __future__ import annotations

import ast
import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest

from llpbench.core import source_hash as source
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import REGISTRIES
from llpbench.core.source_hash import cell_sources, entry_hash, source_hash
from llpbench.core.syntax import canonical

PLUGIN = '''
"""A plugin."""

import numpy as np

from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.core.registry import register_method
from helper import weight


class Mine:
    """Does it."""

    rate: float = 0.1
    """how fast"""

    def loss(self, x):
        """The loss."""
        return weight(x) + proportion_loss(x) * f"{x:>{3}} is" 'it'
'''
REGISTER = "from llpbench.core.registry import register_method"
HELPER = "from deeper import POWER\n\n\ndef weight(x):\n    return x**POWER\n"


@pytest.fixture
def hash_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """The hash of a class `Mine` in a file, beside files it may import."""
    turn = 0

    def hash_of(text: str = PLUGIN, name: str = "mine", **beside: str) -> str:
        nonlocal turn
        turn += 1
        folder = tmp_path / str(turn)
        folder.mkdir()
        files = {"helper": HELPER, "deeper": "POWER = 2\n"} | beside
        for file, content in {**files, name: text}.items():
            path = folder / f"{file.replace('-', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        module = ModuleType(f"module_{turn}")
        module.__file__ = str(folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        target = type("Mine", (), {"__module__": module.__name__})
        return source_hash(target)

    return hash_of


@pytest.mark.parametrize(
    "text",
    [
        PLUGIN.replace('"""A plugin."""', "# nothing\n\n\n"),
        PLUGIN.replace('        """The loss."""\n', ""),
        PLUGIN.replace('    """how fast"""\n', "    # how fast\n"),
        PLUGIN.replace("'it'", '"it"').replace("0.1", "1e-1").replace("weight(x) + ", "(\n            weight(x)) + "),
        PLUGIN.replace("blocks.losses import masked_mean, proportion_loss", "a import proportion_loss, masked_mean"),
        PLUGIN.replace(f"{REGISTER}\n", "").replace("import numpy", f"{REGISTER}\nimport numpy"),
    ],
    ids=["docstring of the module", "of a method", "of a field", "formatting", "engine's modules", "order of imports"],
)
def test_what_changes_nothing(hash_of, text: str) -> None:  # type: ignore[no-untyped-def]
    assert text != PLUGIN
    assert hash_of(text) == hash_of(PLUGIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate: float = 0.1", "rate: float = 0.2"),
        ("weight(x) +", "weight(x) -"),
        ("is\" 'it'", "is\" 'that'"),
        ("{x:>{3}}", "{x:>{4}}"),
        ("masked_mean, ", ""),
        ("import numpy as np", "import torch as np"),
        ("from helper import weight", "from deeper import POWER as weight"),
        ("rate: float", "rate: int"),
    ],
)
def test_any_other_change_counts(hash_of, old: str, new: str) -> None:  # type: ignore[no-untyped-def]
    assert old in PLUGIN
    assert hash_of(PLUGIN.replace(old, new)) != hash_of(PLUGIN)


def test_helpers_are_followed_whatever_their_names(hash_of) -> None:  # type: ignore[no-untyped-def]
    usual = hash_of()
    assert hash_of(helper=HELPER + "# a comment\n") == usual
    assert hash_of(name="other") == usual
    assert hash_of(PLUGIN.replace("from helper", "from zeta"), zeta=HELPER) == usual
    assert hash_of(PLUGIN.replace("from helper", "from package.helper"), **{"package-helper": HELPER}) == usual
    assert hash_of(helper=HELPER.replace("x**", "x*")) != usual
    assert hash_of(deeper="POWER = 3\n") != usual, "over any number of steps"
    circle = "import mine\n" + HELPER
    assert hash_of(helper=circle) == hash_of(helper=circle)
    inside = PLUGIN.replace("from helper import weight\n", "").replace('"""The loss."""', "from helper import weight")
    assert hash_of(inside) != hash_of(inside, helper=HELPER.replace("x**", "x*")), "imported in a function"


def test_an_installed_library_is_no_source() -> None:
    found = source._Sources(source._Module("x", Path(__file__)))
    assert all(
        found._find(name) is None for name in ("numpy", "torch.nn", "json", "click", "llpbench.core.bags", "none")
    )
    assert found._find("llpbench.methods.dllp") is not None
    assert found._find("bench") is not None


def test_a_plugin_among_installed_libraries_has_its_own_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    for file, text in {
        "mine_a/__init__.py": "",
        "mine_a/method.py": "from .helper import x\nfrom mine_b import y\nfrom stranger import z\nclass Mine: ...\n",
        "mine_a/helper.py": "x = 1\n",
        "mine_b.py": "y = 1\n",
        "stranger.py": "z = 1\n",
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    monkeypatch.syspath_prepend(folder)
    owners = {"mine_a": ["mine"], "mine_b": ["mine"], "stranger": ["strange"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: owners)

    def now() -> str:
        return source._Sources(source._Module("mine_a.method", folder / "mine_a" / "method.py")).hash()

    before = now()
    (folder / "stranger.py").write_text("z = 2\n")
    assert now() == before
    (folder / "mine_b.py").write_text("y = 2\n")
    between = now()
    assert between != before
    (folder / "mine_a" / "helper.py").write_text("x = 2\n")
    assert now() != between


def test_what_was_loaded_is_what_counts(hash_of, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    hash_of()
    target = type("Mine", (), {"__module__": "module_1"})
    first = source_hash(target)
    (tmp_path / "1" / "mine.py").write_text("edited = True\n")
    assert source_hash(target) == first


@pytest.mark.parametrize("kind", list(REGISTRIES))
def test_an_entry_has_the_same_hash_before_and_after_its_import(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in REGISTRIES[kind].entries():
        entry.load()
        loaded = entry_hash(entry)
        monkeypatch.setattr(entry, "target", None)
        assert entry_hash(entry) == loaded


def test_the_sources_of_a_cell() -> None:
    found = cell_sources("dllp", "adult", "ordered:columns=age", "mlp")
    assert found == cell_sources("dllp", "adult", "ordered", "mlp")
    assert len(set(found.values())) == 4
    assert cell_sources("dllp", "adult", "ordered", None)["encoder"] is None
    with pytest.raises(LLPBenchError, match="unknown method"):
        cell_sources("nobody", "adult", "ordered", None)


def hash_of_cells(*cells: str) -> str:
    """The hash of the class `Mine` of a notebook."""
    module = ModuleType("__notebook__")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__notebook__", module)
        for number, cell in enumerate(cells):
            name = f"<cell {number}>"
            linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
            exec(compile(cell, name, "exec"), module.__dict__)
        return source_hash(module.Mine)


def test_of_a_notebook_the_cells_count_that_define_it() -> None:
    mine = "class Mine:\n    def loss(self, x):\n        return twice(x) * RATE\n"
    cells = ["RATE = 2\n", "def twice(x):\n    return 2 * x\n", mine, "def other(): ...\n"]
    first = hash_of_cells(*cells)
    assert hash_of_cells(*cells[:3], "def other():\n    return 1\n") == first
    assert hash_of_cells(cells[0], "def twice(x):\n    # a comment\n    return 2 * x\n", mine) == first
    assert hash_of_cells("RATE = 3\n", *cells[1:]) != first
    assert hash_of_cells(cells[0], "def twice(x):\n    return 3 * x\n", mine) != first


def test_hyperparameters_in_a_notebook_count_though_dataclass_writes_their_functions() -> None:
    head = "from dataclasses import dataclass\nfrom typing import Annotated\nHIGH = 3\n"
    params = "@dataclass(frozen=True)\nclass Params:\n    width: Annotated[int, HIGH] = 8\n"
    mine = "@dataclass\nclass Mine:\n    Params = Params\n    x: int = 1\n    def loss(self):\n        return 1\n"
    first = hash_of_cells(head, params, mine)
    assert hash_of_cells(head, params, mine) == first
    assert hash_of_cells(head, params.replace("8", "9"), mine) != first
    assert hash_of_cells(head.replace("3", "4"), params, mine) != first
    assert hash_of_cells(head, params, mine.replace("return 1", "return 2")) != first


def test_code_without_source_text_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("__notebook__")
    monkeypatch.setitem(sys.modules, "__notebook__", module)
    exec("class Mine:\n    def loss(self): ...\n", module.__dict__)
    with pytest.raises(LLPBenchError, match=r"the source of 'Mine' is unknown.* Put it into") as error:
        source_hash(module.Mine)
    assert "\n" not in str(error.value)


def test_the_hash_distinguishes_all_kinds_of_syntax() -> None:
    texts = ["f'{x}'", "f'{x!r}'", "f'a{x}'", "f'{x:3}'", "1", "1.0", "True", "'1'", "b'1'", "None", "...", "x", "-1"]
    texts += ["[*x]", "{**x}", "{1: x}", *(f"lambda{names}: 1" for names in ("", " x", " *x", " *, x", " *, x=1"))]
    found = [canonical(ast.parse(f"y = {text}"), str) for text in texts]
    assert len(set(found)) == len(texts)

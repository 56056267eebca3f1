"""The layers of the house, the front door, and that every name stands for one thing."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache

import pytest
from bench import python
from repository import ROOT, committed, folder, modules

import llpbench

LAYERS: dict[str, set[str]] = {
    "core": set(),
    "tables": {"core"},
    "data": {"tables", "core"},
    "blocks": {"core"},
    "encoders": {"blocks", "core"},
    "methods": {"blocks", "data", "core"},
    "datasets": {"blocks", "data", "tables", "core"},
    "training": {"encoders", "blocks", "data", "core"},
    "owndata": {"training", "encoders", "blocks", "data", "tables", "core"},
    "results": {"core"},
    "report": {"results", "core"},
    "tuning": {"training", "encoders", "blocks", "data", "core"},
    "running": {"tuning", "training", "encoders", "blocks", "data", "results", "core"},
    "conformance": {"owndata", "training", "encoders", "blocks", "data", "core"},
    "interactive": {"running", "tuning", "training", "report", "results", "data", "core"},
}
"""the rooms that each room may import from, besides itself"""

FREE = {"cli", "__main__", ""}
"""may import everything: the command line, and the front door (`llpbench/__init__.py`)"""

FRONT_DOOR = {name: place.removeprefix("llpbench.") for name, place in llpbench._PLACE_OF.items()}
"""in which module stands what `from llpbench import ...` gives"""

CONTRIBUTED = {"methods", "datasets"}
"""rooms whose files do not even see each other"""

NAMED = {
    ("llpbench.core.registry", "llpbench.methods"),
    ("llpbench.core.registry", "llpbench.encoders"),
    ("llpbench.core.registry", "llpbench.datasets"),
    ("llpbench.data.specs", "llpbench.datasets"),
}
"""packages that are known by name alone: folders of contributions, and the folder of embedded tables"""

WITHOUT = {"report": {"torch", "ray", "llpbench.core.registry"}}
"""what a room must not reach, through whatever it imports"""


def room(module: str) -> str:
    """`core` of `llpbench.core.bags`; `""` of the front door."""
    return module.split(".")[1] if "." in module else ""


def arrows_of(module: str, code: str, is_package: bool = False) -> Iterator[str]:
    """The dotted names that a module's code imports; of this package the modules themselves, and packages by name."""
    known = modules()
    rooms = {*map(room, known)}
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # one dot is the package that the module is in, each further one the package around that
                parents = package[: len(package) - node.level + 1]
                base = ".".join([*parents, base]).rstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                through_the_front_door = base == "llpbench" and not alias.name.startswith("__")
                place = FRONT_DOOR.get(alias.name, alias.name) if through_the_front_door else ""
                yield f"llpbench.{place}" if place else inner if inner in known else base
        elif isinstance(node, ast.Attribute | ast.Constant):  # llpbench.data.frames, "llpbench.data.frames"
            name = ast.unparse(node).strip("'").rstrip(".")
            if re.fullmatch(r"llpbench(\.\w+)+", name) and room(name) in rooms:
                yield name


@cache
def arrows() -> dict[str, frozenset[str]]:
    """What each module imports."""
    code = {module: (file.read_text(encoding="utf-8"), file.stem == "__init__") for module, file in modules().items()}
    return {module: frozenset(arrows_of(module, *given)) for module, given in code.items()}


def against_the_layers(module: str, imported: str) -> bool:
    """Whether the layers forbid this arrow."""
    if imported.split(".")[0] != "llpbench" or room(module) in FREE or (module, imported) in NAMED:
        return False
    if room(imported) == room(module):
        return room(module) in CONTRIBUTED and imported != module
    return room(imported) not in LAYERS[room(module)]


def circles(graph: Mapping[str, Collection[str]]) -> set[str]:
    """The modules that import themselves in the end, and those that need one that does."""
    left = {module: {*others} & graph.keys() - {module} for module, others in graph.items()}
    while ends := {module for module, others in left.items() if not others}:
        left = {module: others - ends for module, others in left.items() if module not in ends}
    return {*left}


def reached(start: str) -> set[str]:
    """All that a room's modules import, and what those import in turn, packages around them included."""
    seen: set[str] = set()
    waiting = [module for module in arrows() if room(module) == start]
    while waiting:
        name = waiting.pop()
        if name in seen or name == "llpbench":  # the front door opens every room, but only when asked
            continue
        seen |= {name, name.split(".")[0]}
        waiting += arrows().get(name, ())
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return seen


class TestArrows:
    def test_imports_follow_layers(self) -> None:
        assert {room(module) for module in modules()} == LAYERS.keys() | FREE
        found = {(module, to) for module, others in arrows().items() for to in others if against_the_layers(module, to)}
        assert found == set()
        assert {(module, to) for module, to in NAMED if to not in arrows()[module]} == set(), "needless exceptions"
        assert {(name, to) for name, others in WITHOUT.items() for to in others & reached(name)} == set()

    def test_files_have_no_import_cycle(self) -> None:
        """The front of a room (`__init__`) may open any of its files."""
        files = {module: others for module, others in arrows().items() if modules()[module].stem != "__init__"}
        assert len(files) > 200
        assert circles(files) == circles(LAYERS) == set()
        assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "x"}, "d": set()}) == {"a", "b", "c"}

    @pytest.mark.parametrize(
        ("module", "code", "forbidden"),
        [
            ("llpbench.core.bags", "import llpbench.data.frames", "llpbench.data.frames"),
            ("llpbench.core.bags", "def late():\n    from llpbench.data.frames import x", "llpbench.data.frames"),
            ("llpbench.core.bags", "if TYPE_CHECKING:\n    import llpbench.cli.main", "llpbench.cli.main"),
            ("llpbench.core.bags", "from ..data.frames import as_text", "llpbench.data.frames"),
            ("llpbench.core.bags", "from .. import data", "llpbench.data"),
            ("llpbench.core.bags", "from llpbench import LLPClassifier", "llpbench.owndata.classifier"),
            ("llpbench.methods.dllp", "from llpbench import run", "llpbench.interactive.sweep"),
            ("llpbench.methods.dllp", "from llpbench import Method, losses, register_method", None),
            ("llpbench.core", "from ..data import frames", "llpbench.data.frames"),
            ("llpbench.core.bags", "import_module(f'llpbench.report.{name}')", "llpbench.report"),
            ("llpbench.core.bags", "llpbench.cli()", "llpbench.cli"),
            ("llpbench.methods.dllp", "from .llp_gan import LLPGAN", "llpbench.methods.llp_gan"),
            ("llpbench.running.runner", "from llpbench.report import make_report", "llpbench.report"),
            ("llpbench.core.bags", "from .errors import LLPBenchError", None),
            ("llpbench.core.bags", "from llpbench import __version__", "llpbench"),
            ("llpbench.core.bags", "from llpbench.core import __version__", None),
            ("llpbench.core.bags", "'''See llpbench.report for more.'''", None),
            ("llpbench.cli.main", "import llpbench.report", None),
        ],
    )
    def test_import_scan_sees_every_form(self, module: str, code: str, forbidden: str | None) -> None:
        found = set(arrows_of(module, code, is_package=module == "llpbench.core"))
        assert {to for to in found if against_the_layers(module, to)} == ({forbidden} - {None})


def test_report_import_loads_no_heavy_library() -> None:
    """One process imports one part after the other: each has a list of its own."""
    engine = {"torch", "ray", "openml", "optuna", "llpbench.core.registry", "llpbench.data", "llpbench.datasets"}
    engine |= {"llpbench.methods", "llpbench.running", "llpbench.training"}
    libraries = {"sklearn", "pandas", "scipy", "numpy", "matplotlib", "jinja2"}
    drawing = dict.fromkeys(("llpbench.report.plots", "llpbench.report.statistics"), engine | {"matplotlib"})
    forbidden = {"llpbench.report": engine | libraries, **drawing}
    code = "import importlib, sys\nfor part in sys.argv[1:]: importlib.import_module(part); print(*sys.modules)"
    loaded = [set(line.split()) for line in python(code, *forbidden, check=True).stdout.splitlines()]
    assert [found & heavy for found, heavy in zip(loaded, forbidden.values(), strict=True)] == [set()] * 3


def test_tree_is_shallow_without_links_and_holds_contributions_only() -> None:
    package = folder("llpbench")
    inside = {file.relative_to(package).parts[0] for file in committed() if file.is_relative_to(package)}
    assert 2 < len(inside) <= 17, sorted(inside)
    assert [str(file.relative_to(ROOT)) for file in committed() if file.is_symlink()] == []
    for name, kinds in (("methods", "method"), ("datasets", "dataset|suite|bagging")):
        top = folder(f"llpbench.{name}")
        inside = {file.relative_to(top).parts[0] for file in committed() if file.is_relative_to(top)}
        files = {entry for entry in inside if entry.endswith(".py")}
        assert inside - files <= ({"embedded", "facts.json"} if name == "datasets" else set())
        registers = re.compile(rf"^(?:@(?:\w+\.)*register_(?:{kinds})|add_dataset|DATASETS)\b", re.MULTILINE)
        idle = {file for file in files if not registers.search((top / file).read_text(encoding="utf-8"))}
        assert idle == {"__init__.py"}, f"{name}/ holds files that register nothing"


def test_names_of_public_classes_and_files_are_unique() -> None:
    """Of what contributions import only the name enters the hash of their source, so it must mean one thing."""
    names = Counter(
        node.name
        for module, file in modules().items()
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        or (room(module) in {"core", "blocks", "data"} and isinstance(node, ast.FunctionDef))
        if not node.name.startswith("_")
    )
    assert len(names) > 50
    names += Counter(f"{file.stem}.py" for file in modules().values() if file.stem != "__init__")
    assert [name for name, number in names.items() if number > 1] == []


def test_import_is_quick_and_loads_no_heavy_library() -> None:
    code = """
import sys, time
start = time.process_time()  # of this process: what others do meanwhile is no fault of its own
import llpbench
print(time.process_time() - start, *[name for name in ("torch", "pandas", "numpy", "click") if name in sys.modules])
"""

    def seconds() -> float:
        took, *heavy = python(code, check=True).stdout.split()
        assert heavy == []
        return float(took)

    assert any(seconds() <= 0.1 for _ in range(3))


def test_lazy_names_are_those_of_definitions_completion_and_type_checkers() -> None:
    for name in FRONT_DOOR:
        place = f"llpbench.{FRONT_DOOR[name]}"
        expected = getattr(importlib.import_module(place), name, None) or importlib.import_module(f"{place}.{name}")
        assert getattr(llpbench, name) is expected
    with pytest.raises(AttributeError, match="no attribute 'Methods'"):
        _ = llpbench.Methods  # type: ignore[attr-defined]
    assert {*dir(llpbench)} == {*FRONT_DOOR, "__version__"}
    assert {*llpbench.__all__} == FRONT_DOOR.keys()
    folders = {path.name for path in (ROOT / "llpbench").iterdir() if path.is_dir()} | {"methods", "datasets"}
    assert not folders & FRONT_DOOR.keys()

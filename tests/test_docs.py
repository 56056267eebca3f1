"""README, CONTRIBUTING, documentation and examples: all of their code runs, and their links lead somewhere."""

from __future__ import annotations

import ast
import json
import linecache
import lzma
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench import LLPBench
from repository import ROOT, module_of

from llpbench.core import registry
from llpbench.core.registry import FAMILIES, METHODS, REGISTRIES, Entry, load_plugin
from llpbench.running.settings import PRESETS

README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w-]+\.\w+)\n")


class Block(NamedTuple):
    language: str
    code: str

    @property
    def file(self) -> str | None:
        """Name of the file that the block shows."""
        named = _NAMED.match(self.code)
        return named[1] if named else None


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(*found) for found in _BLOCK.findall(text)]


DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
BLOCKS = [block for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8"))]


def commands() -> Iterator[tuple[str, ...]]:
    """The arguments of every `llpbench` command of the shell blocks."""
    for block in BLOCKS:
        if block.language != "bash":
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            for command in line.split(" && "):
                program, *arguments = shlex.split(command, comments=True) or [""]
                if Path(program).name == "llpbench":
                    yield tuple(arguments)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the examples and the files that the blocks show."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in BLOCKS:
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
    return tmp_path


RUN = [b for b in blocks_of(README + CONTRIBUTING) if b.language == "python" and not b.file]


def test_continuous_integration_installs_like_the_command_for_tests_of_readme() -> None:
    (readme,) = re.findall(r"pip install (.*) && \S*pytest", (ROOT / "README.md").read_text(encoding="utf-8"))
    (checks,) = re.findall(r'pip" install (.*)', (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert readme == checks


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("block", RUN, ids=lambda b: b.code[:40])
def test_python_blocks_run(block: Block) -> None:
    exec(compile(block.code, "<block>", "exec"), {"__name__": "__main__"})


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_plugin_files_register_something_and_their_methods_and_baggings_run(llpbench: LLPBench) -> None:
    shown = [b.file for b in BLOCKS if b.language == "python" and b.file and "register_column" not in b.code]
    files = [*shown, "examples/mean_teacher.py"]
    added: list[Entry] = []
    for file in files:
        before = {*chain(*(registry.names() for registry in REGISTRIES.values()))}
        load_plugin(file)
        found = [entry for registry in REGISTRIES.values() for entry in registry.entries() if entry.name not in before]
        assert found, f"{file} registers nothing"
        added += found
    methods, baggings = (",".join(each.name for each in added if each.kind == kind) for kind in ("method", "bagging"))
    assert methods
    assert baggings
    plugins = [part for file in files for part in ("--plugin", file)]
    quick = ["--epochs=1", "--seeds=1", "--bag-sizes=1024", "--max-bags=8", "--executor=debug", "--out=out"]
    llpbench.succeed("run", *plugins, "--methods", methods, "--baggings", f"ordered,{baggings}", *quick)


@pytest.mark.parametrize("arguments", dict.fromkeys(commands()), ids=" ".join)
@pytest.mark.usefixtures("folder")
def test_commands_are_understood(arguments: tuple[str, ...], llpbench: LLPBench) -> None:
    # --help is answered only once all flags before it are known; --dry-run reads their values, too
    llpbench.succeed(*arguments, "--dry-run" if "run" in arguments[:1] else "--help")


def test_every_kind_of_block_is_known(llpbench: LLPBench) -> None:
    """A misspelt language would leave a block untested; blocks without one are output."""
    assert {block.language for block in BLOCKS} <= {"bash", "python", "toml", "text"}
    assert any(block.file for block in BLOCKS)
    assert all(tomllib.loads(block.code) for block in BLOCKS if block.language == "toml")
    assert llpbench("run", "--no-such-flag", "--help").code == 2, "a wrong flag of a block is noticed"


UNLISTED = {"measurements.md"}
"""pages outside the navigation"""

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            if not target.startswith(("http:", "https:", "mailto:")):
                yield page, target


def anchors(page: Path) -> set[str]:
    """As GitHub and mkdocs make them of headings: lower case, signs left out, hyphens for spaces."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
    words = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", word) for word in words}


def test_every_internal_link_leads_somewhere() -> None:
    found = list(links())
    assert len(found) > 40
    for page, target in found:
        name, _, anchor = target.partition("#")
        aim = (page.parent / name).resolve() if name else page
        assert aim.exists(), f"{page.name}: {target}"
        if anchor and aim.suffix == ".md":
            assert anchor in anchors(aim), f"{page.name}: {target}"


def test_every_page_is_in_the_navigation() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    linked = re.findall(r"'([^']+\.md)'", str(nav))
    assert [page for page in linked if not (ROOT / page).is_file()] == []
    assert {page.name for page in DOCS} - {Path(page).name for page in linked} == UNLISTED


def test_site_builder_reports_dead_links(tmp_path: Path) -> None:
    build = module_of(ROOT / "docs" / "build_site.py")
    (tmp_path / "a").mkdir()
    (tmp_path / "b.html").write_text('<a href="a">', encoding="utf-8")
    (tmp_path / "a" / "c.html").write_text(
        '<a href="../b.html#x"><a href="/b.html"><a href="https://x.org"><img src="d.svg">', encoding="utf-8"
    )
    assert build.dead_links(tmp_path) == ["a/c.html: d.svg"]


def test_reference_pages_are_what_the_code_says() -> None:
    generate = module_of(ROOT / "docs" / "generate.py")
    for name, page in generate.PAGES.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(), "run: python docs/generate.py"
    built_in = {entry.name for entry in METHODS.entries() if entry.module.startswith("llpbench.")}
    assert tuple(generate.HEADINGS) == FAMILIES
    assert sorted(re.findall(r"^### (.*)$", generate.methods(), re.MULTILINE)) == sorted(built_in)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory; runs are of one process, and leave no method behind."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"executor": "debug", "epochs": 1, "max-bags": 8}.items():
        monkeypatch.setitem(PRESETS["quick"], name, value)
    monkeypatch.setattr(registry.METHODS, "_entries", dict(registry.METHODS._index()))
    return tmp_path


def python_of(page: Path) -> list[Block]:
    """The Python of a page but for the files that it shows."""
    return [b for b in blocks_of(page.read_text(encoding="utf-8")) if b.language == "python" and not b.file]


@pytest.mark.parametrize("page", [p for p in DOCS if python_of(p)], ids=lambda p: p.name)
@pytest.mark.usefixtures("quick")
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(python_of(page)):
        name = f"<{page.name} {number}>"  # its lines are kept as those of a notebook's cell: methods are known by them
        linecache.cache[name] = (len(block.code), None, block.code.splitlines(keepends=True), name)
        exec(compile(block.code, name, "exec"), names)


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)
@pytest.mark.usefixtures("quick")
def test_notebooks_run(notebook: Path) -> None:
    """Cell by cell, without Jupyter, with fewer sizes, seeds and epochs; what a cell ends with can be shown."""

    made = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in made["cells"]:
        assert not cell.get("outputs"), "outputs are not committed"
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"]).replace("[64, 256, 1024]", "[512, 1024]").replace("SEEDS = 3", "SEEDS = 1")
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, notebook.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)
            shown = [
                getattr(value, name)() for name in ("_repr_html_", "_repr_png_", "__repr__") if hasattr(value, name)
            ]
            assert all(shown)


QUICK: dict[str, Any] = {"method": "count-gbdt", "params": {"trees": 100}}
SIZES: dict[str, dict[str, Any]] = {
    "adult": {"rows": 1500},
    "flights": {"rows": 3000},
    "diamonds": {"rows": 2000},
    "noisy": {"rows": 3000},
    "precincts": {"rows": 1500, "precincts": 40, "method": "bag-gp", "params": {"draws": 0}},
    "ads": {"rows": 10_000},
}
RIGHT: dict[str, Callable[[dict[str, float]], bool]] = {
    "adult": lambda found: found["by features"] > 0.7,
    "flights": lambda found: found["AUC"] > 0.55,
    "diamonds": lambda found: found["AUC"] > 0.7,
    "noisy": lambda found: found["noise modelled"] > 0.6,
    "precincts": lambda found: 0 < found["error of the model"] < found["error of the overall share"],
    "ads": lambda found: 0.5 < found["AUC"] < found["AUC of the true probabilities"],
}
"""a class that is taken for another would be far below a coin"""


def example_commands(name: str) -> list[list[str]]:
    """Those of the section of an example."""
    text = (ROOT / "docs" / "walk-throughs.md").read_text(encoding="utf-8")
    section = next(part for part in text.split("\n## ") if f"](../examples/{name}.py)" in part)
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("llpbench ")]


@pytest.mark.parametrize("name", SIZES)
def test_examples_and_their_commands_run(name: str, tmp_path: Path, monkeypatch: Any, llpbench: LLPBench) -> None:
    found = module_of(ROOT / "examples" / f"{name}.py").main(tmp_path, **(QUICK | SIZES[name]))
    assert RIGHT[name](found), found
    assert found.get("in the interval", 1) > 0.8
    assert f"`{name}.py`" in (ROOT / "examples" / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    lines = example_commands(name)
    assert {line[1] for line in lines} == {"fit", "estimate" if name == "precincts" else "predict"}
    for line in lines:
        if line[1] == "fit" and "--method" not in line:
            line += ["--method", "bag-gp", "--set", "draws=0"]
        llpbench.succeed(*line[1:])


@pytest.mark.slow
def test_nano_agrees_with_published_runs() -> None:
    """The whole idea in one file without the package: equal within the noise of a split."""
    nano = module_of(ROOT / "examples" / "nano.py")
    found = {name: 100 * auc for name, auc in nano.main().items()}
    shard = ROOT / "leaderboards" / "core" / "journal" / "adult.jsonl.xz"
    records = [json.loads(line) for line in lzma.decompress(shard.read_bytes()).splitlines()]
    for name, method, criterion in (
        ("ridge on bag means", "bag-mean-linear", "mpiou"),
        ("likelihood of counts", "count-linear", "mpiou"),
        ("DLLP, no labels", "dllp", "mpiou"),
        ("DLLP, validation labels", "dllp", "auc"),
    ):
        published = [
            100 * record["judged"][record["results"][criterion]["judged"]]["test"]["auc"]
            for record in records
            if record["status"] == "ok" and record["spec"]["method"] == method
            if record["spec"]["bagging"] == "ordered" and record["spec"].get("numbers", "z") == "z"
        ]
        assert len(published) >= 3
        assert found[name] == pytest.approx(sum(published) / len(published), abs=2.5), name

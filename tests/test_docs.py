"""The documentation: its links lead somewhere, its reference pages fit the code, its Python and its notebook run.

Its commands, and the files that its blocks show, are tried with README's (`test_readme.py`).
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT, module_of
from test_readme import DOCS, PAGES, Block, blocks_of

from llpbench.core import registry
from llpbench.core.registry import FAMILIES, METHODS
from llpbench.running.settings import PRESETS

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
    linked = [page for entry in nav for page in _pages(entry)]
    assert [page for page in linked if not (ROOT / page).is_file()] == []
    assert {page.name for page in DOCS} - {Path(page).name for page in linked} == UNLISTED


def _pages(entry: dict[str, Any]) -> Iterator[str]:
    for value in entry.values():
        if isinstance(value, str):
            yield value
        else:
            for inner in value:
                yield from _pages(inner)


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
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return [block for block in blocks if block.language == "python" and not block.file]


OWN = {"own-data.md", "choosing.md"}
"""pages whose Python is run by `test_examples.py`"""


@pytest.mark.parametrize(
    "page", [page for page in DOCS if python_of(page) and page.name not in OWN], ids=lambda page: page.name
)
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

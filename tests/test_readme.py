"""The code in README, CONTRIBUTING and the documentation is run, so that it cannot rot (but see `test_docs.py`).

A block whose first line is a comment with a file name (`# my_method.py`) is written to a file, which commands further
down may use. Other Python blocks are run. Of the shell blocks every `llpbench` command is tried: `run` only plans.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from bench import LLPBench
from repository import ROOT

from llpbench.core.registry import REGISTRIES, Entry, load_plugin

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
def folder(tmp_path: Path) -> Path:
    """A working directory with the examples and the files that the blocks show."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in BLOCKS:
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "block",
    [b for b in blocks_of(README + CONTRIBUTING) if b.language == "python" and not b.file],
    ids=lambda b: b.code[:40],
)
def test_python_blocks_run(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec(compile(block.code, "<block>", "exec"), {"__name__": "__main__"})


@pytest.mark.slow
def test_plugin_files_register_something_and_their_methods_and_baggings_run(
    folder: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
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
    result = llpbench("run", *plugins, "--methods", methods, "--baggings", f"ordered,{baggings}", *quick)
    assert result.code == 0, result.err


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=lambda b: b.code[:40])
def test_toml_blocks_are_toml(block: Block) -> None:
    assert tomllib.loads(block.code)


@pytest.mark.parametrize("arguments", dict.fromkeys(commands()), ids=" ".join)
def test_commands_are_understood(
    arguments: tuple[str, ...], folder: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    # --help is answered only once all flags before it are known; --dry-run reads their values, too
    result = llpbench(*arguments, "--dry-run" if "run" in arguments[:1] else "--help")
    assert result.code == 0, result.err


def test_a_wrong_flag_is_noticed(llpbench: LLPBench) -> None:
    assert llpbench("run", "--no-such-flag", "--help").code == 2


def test_every_kind_of_block_is_known() -> None:
    """A misspelt language would leave a block untested; blocks without one are output."""
    assert {block.language for block in BLOCKS} <= {"bash", "python", "toml", "text"}
    assert any(block.file for block in BLOCKS)

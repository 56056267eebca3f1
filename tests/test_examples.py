"""The examples, and the commands of the docs on their files, at a size that takes seconds."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import LLPBench

ROOT = Path(__file__).parents[1]
QUICK: dict[str, Any] = {"method": "count-gbdt", "params": {"trees": 100}}
SIZES: dict[str, dict[str, int]] = {
    "adult": {"rows": 1500},
    "flights": {"rows": 3000},
    "diamonds": {"rows": 2000},
    "noisy": {"rows": 3000},
    "precincts": {"rows": 1500, "precincts": 40},
    "ads": {"rows": 10_000},
}
RIGHT: dict[str, Callable[[dict[str, float]], bool]] = {
    "adult": lambda found: found["by features"] > 0.7,
    "flights": lambda found: found["AUC"] > 0.55,
    "diamonds": lambda found: found["AUC"] > 0.7,
    "noisy": lambda found: found["noise modelled"] > 0.6,
    "precincts": lambda found: (
        found["error of the model"] < found["error of the overall share"] and found["in the interval"] > 0.8
    ),
    "ads": lambda found: 0.5 < found["AUC"] < found["AUC of the true probabilities"],
}
"""a class that is taken for another would be far below a coin"""


def example(name: str) -> Any:
    """The module of a script."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(name: str) -> list[list[str]]:
    """Those of the section of an example."""
    text = "\n## ".join((ROOT / "docs" / name).read_text() for name in ("own-data.md", "walk-throughs.md"))
    section = next(part for part in text.split("\n## ") if f"](../examples/{name}.py)" in part)
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("llpbench ")]


@pytest.mark.parametrize("name", list(SIZES))
def test_examples_run_and_so_do_their_commands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: LLPBench
) -> None:
    found = example(name).main(tmp_path, **SIZES[name], **QUICK)
    assert RIGHT[name](found), found
    monkeypatch.chdir(tmp_path)
    lines = commands(name)
    assert {line[1] for line in lines} == {"fit", "estimate" if name == "precincts" else "predict"}
    for line in lines:
        if line[1] == "fit" and "--method" not in line:
            line += ["--method", "count-gbdt", "--set", "trees=100"]
        if line[1] == "estimate":
            line += ["--refits", "5"]
        result = llpbench(*line[1:])
        assert result.code == 0, result.err


def test_every_example_is_known() -> None:
    scripts = {file.stem for file in (ROOT / "examples").glob("*.py")}
    assert scripts == set(SIZES)
    listed = (ROOT / "examples" / "README.md").read_text()
    assert all(f"`{name}.py`" in listed for name in scripts)

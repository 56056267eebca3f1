"""The examples, and the commands of the docs on their files, at a size that takes seconds."""

from __future__ import annotations

import json
import lzma
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bench import LLPBench
from repository import ROOT, module_of

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
    "precincts": lambda found: (
        found["error of the model"] < found["error of the overall share"] and found["in the interval"] > 0.8
    ),
    "ads": lambda found: 0.5 < found["AUC"] < found["AUC of the true probabilities"],
}
"""a class that is taken for another would be far below a coin"""


def commands(name: str) -> list[list[str]]:
    """Those of the section of an example."""
    text = (ROOT / "docs" / "walk-throughs.md").read_text(encoding="utf-8")
    section = next(part for part in text.split("\n## ") if f"](../examples/{name}.py)" in part)
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("llpbench ")]


SCRIPTS = sorted(SIZES)


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_and_their_commands_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: LLPBench
) -> None:
    found = module_of(ROOT / "examples" / f"{name}.py").main(tmp_path, **(QUICK | SIZES[name]))
    assert RIGHT[name](found), found
    assert f"`{name}.py`" in (ROOT / "examples" / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    lines = commands(name)
    assert {line[1] for line in lines} == {"fit", "estimate" if name == "precincts" else "predict"}
    for line in lines:
        if line[1] == "fit" and "--method" not in line:
            line += ["--method", "bag-gp", "--set", "draws=0"]
        result = llpbench(*line[1:])
        assert result.code == 0, result.err


def test_nano_agrees_with_published_runs() -> None:
    """The whole idea in one file without the package: equal within the noise of three splits."""
    nano = module_of(ROOT / "examples" / "nano.py")
    found = pd.DataFrame([nano.main(seed) for seed in range(3)]).mean() * 100
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

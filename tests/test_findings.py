"""Numbers of README and of the findings on the suite `core` are what the journal says."""

from __future__ import annotations

import json
import lzma
import re
from typing import Any

import pandas as pd
import pytest
from repository import ROOT

LEAST = 17
"""two-class datasets that every method of the table has run on"""


@pytest.fixture(scope="module")
def means() -> pd.DataFrame:
    """Mean test AUC × 100 over seeds, then over the datasets that all methods share, by method and bagging."""
    shards = sorted((ROOT / "leaderboards" / "core" / "journal").glob("*.jsonl.xz"))
    records = [json.loads(line) for path in shards for line in lzma.decompress(path.read_bytes()).splitlines()]
    rows = [
        (*(record["spec"][part] for part in ("dataset", "bagging", "method")), _auc(record))
        for record in records
        if record["status"] == "ok" and record["dataset"]["classes"] == 2 and record["spec"]["bag_size"] == 256
        if record["spec"]["pretraining"] == "none" and record["spec"].get("numbers", "z") == "z"
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "bagging", "method", "auc"])
    shared = frame.pivot_table(index=["bagging", "dataset"], columns="method", values="auc")[_methods()].dropna()
    assert (shared.groupby("bagging").size() == LEAST).all()
    return shared.groupby("bagging").mean().T


def test_the_table_of_core_in_readme(means: pd.DataFrame) -> None:
    for method, ordered, random in _table():
        assert float(ordered) == pytest.approx(means.loc[method, "ordered"], abs=0.051)
        assert float(random) == pytest.approx(means.loc[method, "random"], abs=0.051)


def _auc(record: dict[str, Any]) -> float:
    judged = record["judged"][record["results"]["auc"]["judged"]]
    return 100 * float(judged["test"]["auc"])


def _methods() -> list[str]:
    return [method for method, _, _ in _table()]


def _table() -> list[tuple[str, str, str]]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme[readme.index("| method | uses | core, ordered") :]
    return re.findall(r"^\| ([\w-]+) \| [\w, ]+ \| (\d[\d.]+) \| (\d[\d.]+) \|", part, re.MULTILINE)

"""Numbers of README and of the findings on the suite `core` are what the journal says."""

from __future__ import annotations

import json
import lzma
import re
from typing import Any

import pandas as pd
import pytest
from repository import ROOT
from scipy import stats

DATASETS = 17
"""two-class datasets that every method of the table has run on"""
PARTS = ("dataset", "bagging", "method")
DEVELOPMENT = ["adult", "bank_marketing"]
"""datasets on which the first method was developed; differences leave them out"""


@pytest.fixture(scope="module")
def scores() -> dict[str, pd.DataFrame]:
    """Mean test AUC × 100 over seeds without labels of rows: by bagging, a frame of datasets by methods.

    As on the boards, a method has the best of its settings.
    """
    shards = sorted((ROOT / "leaderboards" / "core" / "journal").glob("*.jsonl.xz"))
    records = [json.loads(line) for path in shards for line in lzma.decompress(path.read_bytes()).splitlines()]
    rows = [
        (*(record["spec"].get(part, "z") for part in (*PARTS, "pretraining", "numbers")), _auc(record))
        for record in records
        if record["status"] == "ok" and record["dataset"]["classes"] == 2 and record["spec"]["bag_size"] == 256
    ]
    frame = pd.DataFrame(rows, columns=[*PARTS, "pretraining", "numbers", "auc"])
    methods = [method for method, *_ in _table()]
    found = {}
    for bagging, part in frame.groupby("bagging"):
        entries = part.pivot_table(index="dataset", columns=["method", "pretraining", "numbers"], values="auc")
        entries = entries[entries["bag-gp-gbdt"].notna().all(axis=1) & entries["dllp", "none", "z"].notna()].dropna(
            axis=1
        )
        assert len(entries) == DATASETS
        best = {method: entries[method].mean().idxmax() for method in methods}
        found[bagging] = pd.DataFrame({method: entries[method][setting] for method, setting in best.items()})
    return found


@pytest.mark.parametrize(("bagging", "column"), [("ordered", 0), ("random", 1)])
def test_readme_table_of_core_matches_journal(scores: dict[str, pd.DataFrame], bagging: str, column: int) -> None:
    of_all = scores[bagging]
    judged = of_all.drop(index=DEVELOPMENT)
    for method, *cells in _table():
        mean, *interval = map(float, re.findall(r"-?[\d.]+", cells[column]))
        assert mean == pytest.approx(of_all[method].mean(), abs=0.051)
        if interval:
            lead = judged[method] - judged.iloc[:, 0]
            expected = stats.t.interval(0.95, len(lead) - 1, lead.mean(), stats.sem(lead))
            assert interval == pytest.approx(expected, abs=0.051)


def _auc(record: dict[str, Any]) -> float:
    results = record["results"]
    judged = record["judged"][results.get("mpiou", results["auc"])["judged"]]  # methods without epochs may lack mPIoU
    return 100 * float(judged["test"]["auc"])


def _table() -> list[tuple[str, str, str]]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme[readme.index("| method | uses | core, ordered") :]
    return re.findall(r"^\| ([\w-]+)[\w() ]* \| [\w, ]+ \| (\d[^|]+) \| (\d[^|]+) \|", part, re.MULTILINE)

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
DEVELOPMENT = ["adult", "bank_marketing"]
"""datasets on which the first method was developed; differences leave them out"""


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    """Mean test AUC × 100 over seeds without labels of rows, by bagging and dataset, of the methods in the table."""
    shards = sorted((ROOT / "leaderboards" / "core" / "journal").glob("*.jsonl.xz"))
    records = [json.loads(line) for path in shards for line in lzma.decompress(path.read_bytes()).splitlines()]
    rows = [
        (*(record["spec"][part] for part in ("dataset", "bagging", "method")), _auc(record))
        for record in records
        if record["status"] == "ok" and record["dataset"]["classes"] == 2 and record["spec"]["bag_size"] == 256
        if record["spec"]["pretraining"] == "none" and record["spec"].get("numbers", "z") == "z"
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "bagging", "method", "auc"])
    methods = [method for method, *_ in _table()]
    shared = frame.pivot_table(index=["bagging", "dataset"], columns="method", values="auc")[methods].dropna()
    assert (shared.groupby("bagging").size() == DATASETS).all()
    return shared


@pytest.mark.parametrize(("bagging", "column"), [("ordered", 0), ("random", 1)])
def test_readme_table_of_core_matches_journal(scores: pd.DataFrame, bagging: str, column: int) -> None:
    of_all = scores.loc[bagging]
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
    return re.findall(r"^\| ([\w-]+) \| [\w, ]+ \| (\d[^|]+) \| (\d[^|]+) \|", part, re.MULTILINE)

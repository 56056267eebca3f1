"""Files of own data, and models fitted to them, for the tests of commands.

A pytest plugin, named in `conftest.py`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import LLPClassifier


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows and bags as CSV and parquet, rows with zones, models of these rows by three methods, and one of an array."""
    tmp_path = tmp_path_factory.mktemp("own")
    frame, bags, votes = people(300, 12)
    rows = frame.assign(district=[int(bag[1:]) for bag in bags], id=np.arange(300))
    table = counted(rows["district"], np.array(["no", "yes"])[votes]).rename_axis("district").reset_index()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.set_index("id").to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "bags.csv", index=False)
    table.to_parquet(tmp_path / "bags.parquet")
    rows.assign(zone=["z1", "z2", "z3"] * 100).to_csv(tmp_path / "zones.csv", index=False)
    features, bags = pd.read_csv(tmp_path / "rows.csv")[["age", "owns", "town", "job"]], rows["district"].astype(str)
    counts = table.set_index(table["district"].astype(str))[["no", "yes"]]
    for name, method, params in (
        ("fitted", "count-gbdt", {"trees": 100}),
        ("process", "bag-gp", {"most_pairs": 0, "draws": 0}),
        ("linear", "bag-mean-linear", None),
    ):
        LLPClassifier(method, params=params).fit(features, bags, counts=counts).save(tmp_path / name)
    LLPClassifier("bag-mean-linear").fit([[0.0], [1.0]], [0, 1], counts=[0, 1]).save(tmp_path / "of-an-array")
    return tmp_path


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with copies of these files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path

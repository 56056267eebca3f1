"""A dataset without labels, from files of its own to its boards."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from bench import LLPBench

from llpbench.results.journal import FILE, read

PLUGIN = '''
"""Votes by district: only counts are known."""

from llpbench.core.registry import register_dataset
from llpbench.data.sources import Parquet


@register_dataset("votes", source=Parquet("people.parquet"), bags=Parquet("districts.parquet"), by=("district",))
def votes(frame):
    """Who voted what?"""
    return frame
'''


def write_votes(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    district = np.sort(rng.integers(0, 60, 900))
    age = rng.normal(size=60)[district] + rng.normal(size=900)
    yes = rng.random(900) < 1 / (1 + np.exp(-2 * age))
    pd.DataFrame({"age": age, "noise": rng.normal(size=900), "district": district}).to_parquet(
        folder / "people.parquet"
    )
    counts = pd.DataFrame({"no": ~yes, "yes": yes}).groupby(district).sum().astype(float)
    counts.iloc[0] = np.nan  # suppressed
    counts.rename_axis("district").reset_index().to_parquet(folder / "districts.parquet")
    plugin = folder / "votes.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    return plugin


def test_dataset_without_labels_is_trained_and_judged_by_bags(llpbench: LLPBench, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--datasets", "votes", "--plugin", str(write_votes(tmp_path)), "--executor", "debug", "--seeds", "2")
    methods = ("--methods", "bag-share,bag-mean-linear,dllp,supervised-gbdt", "--epochs", "3")
    result = llpbench("run", *words, *methods, "--baggings", "given,random", "--bag-sizes", "16", "--out", str(out))
    assert result.code == 0
    assert "given bags, mPIoU of validation bags" in result.out
    assert "'supervised-gbdt' needs labels of rows, but 'votes' has none" in result.err
    assert "no labels of rows, so 'random' bags cannot be counted. Choose --baggings given" in result.err
    records = read(out / FILE).records.values()
    assert len(records) == 6
    for record in records:
        assert record["status"] == "ok"
        assert {"auc", "accuracy"}.isdisjoint(record["results"])
        assert set(record["results"]["l1"]["test"]) == {"mpiou", "l1"}
    page = (out / "README.md").read_text(encoding="utf-8")
    assert page.index("| bag-mean-linear ") < page.index("| bag-share (floor) ")
    shown = (out / "index.html").read_text(encoding="utf-8")
    assert re.search("<h2>[^<]*given bags[^<]*</h2>", shown)

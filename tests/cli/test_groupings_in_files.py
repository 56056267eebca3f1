"""Two tables of bags of the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done, refused
from districts import counted, people

from llpbench import LLPClassifier

FIT = ["fit", "rows.csv", "--counts", "no,yes", "--method", "bag-mean-linear", "--out", "model"]
BOTH = ["--bags", "a.csv", "--bag-column", "district", "--bags", "b.csv", "--bag-column", "home+half"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A working directory with rows and two tables of bags, the second one by two columns."""
    frame, bags, votes = people(400, 16)
    rows = frame.assign(district=bags, home=np.where(frame["owns"], "own", "rent"), half=np.arange(400) % 2)
    names = np.array(["no", "yes"])[votes]
    counted(rows["district"], names).to_csv(tmp_path / "a.csv")
    pd.crosstab([rows["home"], rows["half"]], names).to_csv(tmp_path / "b.csv")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return rows


def test_rows_without_bag_in_one_grouping_are_counted_once(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    rows.assign(home=rows["home"].mask(rows.index < 60)).to_csv("rows.csv", index=False)
    assert "60 of 400 rows" in refused(llpbench(*FIT, *BOTH))
    rows.to_csv("rows.csv", index=False)
    pd.read_csv("b.csv").iloc[1:].to_csv("b.csv", index=False)
    dropped = ((rows["home"] == "own") & (rows["half"] == 0)).sum()
    for name in ("strength", "bag-mean-linear.strength"):
        result = done(llpbench(*FIT, *BOTH, "--drop-unmatched", "--set", f"{name}=2"))
        assert f"dropped: {dropped} rows" in result.out
        assert "400 rows in 19 bags" in result.out
        assert float((LLPClassifier.load("model").params or {})["strength"]) == 2


def test_two_groupings_in_files_are_used(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    result = done(llpbench(*FIT, *BOTH))
    assert "400 rows in 20 bags" in result.out
    model = LLPClassifier.load("model")
    assert ("own", "0") in {*model.bags_}
    assert {*model.key_features_}.isdisjoint(model.feature_names_in_)
    assert not {"district", "home", "half"} & {*model.feature_names_in_}
    assert llpbench("predict", "model", "rows.csv", "--out", "new.csv").code == 0
    assert len(pd.read_csv("new.csv")) == len(rows)
    for grouping in (BOTH[2:4], BOTH[6:]):  # labels of one part, and of two
        done(llpbench("predict", "model", "rows.csv", *grouping, "--whole-bags", "--out", "whole.csv"))
        found = pd.read_csv("whole.csv")
        keys = grouping[1].split("+")
        expected = pd.read_csv("a.csv" if len(keys) == 1 else "b.csv").set_index(keys)["yes"]
        assert np.allclose(found.groupby(keys)["probability_yes"].sum(), expected.sort_index())


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("more", [[*BOTH, "--out-of-core"], [*BOTH, "--method", "dllp"]])
def test_conflicting_options_are_refused(llpbench: LLPBench, more: list[str]) -> None:
    refused(llpbench(*FIT, *more))


RANGES = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--method", "bag-mean-linear"]


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.Series:
    """The true counts; a working directory with rows, and counts below 8 as a range."""
    frame, bags, votes = people(600, 40)
    frame.assign(district=bags).to_csv(tmp_path / "rows.csv", index=False)
    yes = counted(bags, votes)[1].rename_axis("district").rename("yes")
    yes.astype(object).mask(yes < 8, "<8").to_csv(tmp_path / "bags.csv")
    monkeypatch.chdir(tmp_path)
    return yes


def test_counts_file_with_ranges_is_read(votes: pd.Series, llpbench: LLPBench) -> None:
    result = done(llpbench(*RANGES, "--counts", "yes", "--out", "model"))
    assert "'<8'" in result.err
    known = LLPClassifier.load("model").bag_counts_[:, 1]
    assert (known[votes >= 8] == votes[votes >= 8]).all()
    assert (known[votes < 8] < 7).all()
    assert "'<8'" not in llpbench(*RANGES, "--counts", "yes", "--suppressed", "<8", "--out", "model").err
    assert np.isnan(LLPClassifier.load("model").bag_counts_[votes < 8]).all()
    noisy = llpbench(*RANGES, "--counts", "yes", "--noise", "2", "--out", "model")
    assert (noisy.code, noisy.err.splitlines()[-1].startswith("llpbench: ")) == (2, True)

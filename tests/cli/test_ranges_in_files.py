"""Ranges in a table of bags are read as such, and told of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench
from districts import counted, people

from llpbench import LLPClassifier

FIT = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--method", "bag-mean-linear"]


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.Series:
    """The true counts; a working directory with rows, and counts below 8 as a range."""
    frame, bags, votes = people(600, 40)
    frame.assign(district=bags).to_csv(tmp_path / "rows.csv", index=False)
    yes = counted(bags, votes)[1].rename_axis("district").rename("yes")
    yes.astype(object).mask(yes < 8, "<8").to_csv(tmp_path / "bags.csv")
    monkeypatch.chdir(tmp_path)
    return yes


def test_a_file_with_ranges(votes: pd.Series, llpbench: LLPBench) -> None:
    result = llpbench(*FIT, "--counts", "yes", "--out", "model")
    assert result.code == 0, result.err
    assert "'<8'" in result.err
    known = LLPClassifier.load("model").bag_counts_[:, 1]
    assert (known[votes >= 8] == votes[votes >= 8]).all()
    assert (known[votes < 8] < 7).all()
    assert "'<8'" not in llpbench(*FIT, "--counts", "yes", "--suppressed", "<8", "--out", "model").err
    assert np.isnan(LLPClassifier.load("model").bag_counts_[votes < 8]).all()


@pytest.mark.usefixtures("votes")
@pytest.mark.parametrize("counts", [["--proportions", "yes"], ["--counts", "yes", "--noise", "2"]])
def test_ranges_of_anything_but_counts_are_one_clear_line(llpbench: LLPBench, counts: list[str]) -> None:
    result = llpbench(*FIT, *counts, "--out", "model")
    assert result.code == 2
    assert result.err.strip().splitlines()[-1].startswith("llpbench: ")

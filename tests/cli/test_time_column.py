"""`--time-column`: later bags are held out."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from bench import LLPBench
from districts import counted, people

CHOOSE = ["choose", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--counts", "0,1", "--folds", "2"]
METHODS = ["--methods", "bag-mean-linear,bag-soft-label-linear"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with rows and bags; both files have a date of each bag, under different names."""
    frame, bags, votes = people(200, 8)
    day = pd.Series(bags).str[1:].astype(int)
    rows = frame.assign(district=bags, day=[f"2024-01-{number + 1:02}" for number in day])
    table = counted(bags, votes).rename_axis("district").reset_index().assign(week=[8, 7, 6, 5, 4, 3, 2, 1])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    table.to_csv(tmp_path / "bags.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("column", "first"), [("day", "d00"), ("week", "d07")])
def test_later_bags_are_held_out_by_a_column_of_either_file(
    folder: Path, llpbench: LLPBench, column: str, first: str
) -> None:
    result = llpbench(*CHOOSE, *METHODS, "--time-column", column, "--out", "choice")
    assert result.code == 0, result.err
    bags = pd.read_csv(folder / "choice" / "bags.csv")
    assert first not in set(bags["bag"])
    assert bags["bag"].nunique() == 5
    assert "later bags" in (folder / "choice" / "index.html").read_text()
    assert ("'day'" in result.err) == (column != "day")  # a feature that names the bags, unless it is their time


def test_a_bag_of_several_days_is_one_clear_line(folder: Path, llpbench: LLPBench) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    rows.loc[0, "day"] = "2025-01-01"
    rows.to_csv(folder / "rows.csv", index=False)
    result = llpbench(*CHOOSE, *METHODS, "--time-column", "day")
    assert result.code == 2
    assert "'2025-01-01'" in result.err
    assert len(result.err.strip().splitlines()) == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("more", [["--time-column", "month"], ["--time-column", "town"]])
def test_what_is_no_time_is_one_clear_line(llpbench: LLPBench, more: list[str]) -> None:
    result = llpbench(*CHOOSE, *METHODS, *more)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_fit_needs_a_network(llpbench: LLPBench) -> None:
    fit = ["fit", *CHOOSE[1:8], "--out", "model", "--time-column", "week", "--method", "bag-mean-linear"]
    result = llpbench(*fit)
    assert result.code == 2
    assert "--time-column" in result.err

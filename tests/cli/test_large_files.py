"""`llpbench fit --out-of-core` and `predict --out-of-core`, from files to files."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, Result
from districts import counted, people

from llpbench.blocks import components
from llpbench.cli import large_files
from llpbench.owndata import row_batches

GIVEN = ["--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--leave-out", "id"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with rows as three parts of parquet and as text, and bags."""
    frame, bags, votes = people(600, 30)
    rows = frame.assign(town=frame["town"].astype(object), district=bags, id=np.arange(600))
    rows["gap"] = pd.Series(np.arange(600)).astype("Int64").mask(rows["id"] < 400)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        rows.iloc[200 * part : 200 * part + 200].to_parquet(tmp_path / "parts" / f"{part}.parquet", index=False)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    table = counted(bags, np.array(["no", "yes"])[votes]).rename_axis("district").reset_index()
    table.to_csv(tmp_path / "bags.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 128)
    monkeypatch.setattr(components, "_CHUNK", 128)  # rows that are computed together, in memory, too
    return tmp_path


def fit(llpbench: LLPBench, rows: str, *more: str, method: str = "bag-gp") -> Result:
    fast = ["--set", "draws=0"] if method == "bag-gp" else []
    return llpbench("fit", rows, *GIVEN, *fast, "--leave-out", "gap", "--method", method, "--out", "model", *more)


@pytest.mark.parametrize(
    ("rows", "bag"),
    [("parts", []), ("rows.csv", ["--bag-column", "district"]), ("parts/*.parquet", ["--bag-column", "district"])],
)
def test_predictions_are_those_of_rows_in_memory(folder: Path, llpbench: LLPBench, rows: str, bag: list[str]) -> None:
    result = fit(llpbench, rows, "--out-of-core")
    assert result.code == 0, result.err
    for ending in ("csv", "parquet"):
        for way in ("out-of-core", "in-memory"):
            result = llpbench("predict", "model", rows, *bag, f"--{way}", "--out", f"{way}.{ending}")
            assert result.code == 0, result.err
    assert (folder / "out-of-core.csv").read_text() == (folder / "in-memory.csv").read_text()
    one, other = (pd.read_parquet(folder / f"{way}.parquet") for way in ("out-of-core", "in-memory"))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert len(one) == 600
    assert not list(folder.glob(".*"))


@pytest.mark.usefixtures("folder")
def test_large_rows_are_read_in_batches_unasked(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "LARGE", 1000)
    assert "in batches" in fit(llpbench, "parts").err
    assert "in batches" not in fit(llpbench, "parts", "--in-memory").err
    assert "in batches" not in fit(llpbench, "parts", method="bag-mean-linear").err
    assert "in batches" in llpbench("predict", "model", "rows.csv", "--out", "new.csv").err


@pytest.mark.usefixtures("folder")
def test_what_needs_all_rows_is_refused_in_one_line(llpbench: LLPBench) -> None:
    assert fit(llpbench, "parts").code == 0
    whole = ["--bag-column", "district", "--whole-bags"]
    for result in (
        fit(llpbench, "parts", "--out-of-core", method="auto"),
        fit(llpbench, "parts", "--out-of-core", "--repeat-column", "id"),
        fit(llpbench, "-", "--out-of-core"),
        llpbench("predict", "model", "parts", *whole, "--out", "new.csv", "--out-of-core"),
    ):
        assert result.code == 2
        assert "--out-of-core" in result.err
        assert len(result.err.splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_ranges_need_all_rows_in_memory(llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv").astype(object)
    table.loc[0, "yes"] = "1-9"
    table.to_csv("bags.csv", index=False)
    result = fit(llpbench, "parts", "--out-of-core")
    assert result.code == 2
    assert "--out-of-core" in result.err


def test_a_broken_part_is_named_and_leaves_no_file(folder: Path, llpbench: LLPBench) -> None:
    assert fit(llpbench, "parts").code == 0
    table = pd.read_parquet(folder / "parts" / "2.parquet")
    for broken in (table.assign(age="old"), table.drop(columns="age"), table.assign(age=np.inf)):
        broken.to_parquet(folder / "parts" / "2.parquet", index=False)
        result = llpbench("predict", "model", "parts", "--out-of-core", "--out", "new.parquet")
        assert result.code == 2
        assert "2.parquet" in result.err
        assert "age" in result.err
        assert not [*folder.glob("*new.parquet*"), *folder.glob(".*")]


def test_a_few_texts_among_numbers_are_an_error(
    folder: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 300)
    rows = pd.read_csv(folder / "rows.csv", dtype=str)
    rows["age"] = [f"{20 + place / 10}" for place in range(600)]
    clean = rows.copy()
    for place, told in ((7, "'n/a?' in data row 8 "), (500, "such as 'n/a?'")):  # in the first batch, in another one
        rows = clean.copy()
        rows.loc[place, "age"] = "n/a?"
        rows.to_csv("text.csv", index=False)
        result = fit(llpbench, "text.csv", "--out-of-core")
        assert (result.code, told in result.err) == (2, True)
        advice = [part for part in ("--missing 'n/a?'", "--types age=text") if part in result.err]
        assert len(advice) == 2
        for flags in advice:
            result = fit(llpbench, "text.csv", "--out-of-core", *shlex.split(flags))
            assert (result.code, "used as categories" in result.err) == (0, False)


def test_bags_with_missing_counts_are_named_as_in_memory(folder: Path, llpbench: LLPBench) -> None:
    bags = pd.read_csv(folder / "bags.csv").astype({"no": object, "yes": object})
    bags.loc[[3, 5], "yes"] = ""
    bags.to_csv(folder / "bags.csv", index=False)
    lines = []
    for way in ("--out-of-core", "--in-memory"):
        result = fit(llpbench, "rows.csv", way)
        assert result.code == 0, result.err
        lines.append([line for line in result.err.splitlines() if "missing counts" in line])
    assert lines[0] == lines[1]
    assert len(lines[0]) == 1
    assert all(repr(bag) in lines[0][0] for bag in bags["district"][[3, 5]])

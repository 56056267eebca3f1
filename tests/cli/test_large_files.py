"""`llpbench fit --out-of-core` and `predict --out-of-core`, from files to files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, Result, done, refused
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.blocks import components
from llpbench.cli import reading_options
from llpbench.owndata import bag_effects, group_estimates
from llpbench.tables import row_files

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
    monkeypatch.setattr(row_files, "BATCH_ROWS", 128)
    monkeypatch.setattr(components, "_CHUNK", 128)  # rows that are computed together, in memory, too
    return tmp_path


def fit(llpbench: LLPBench, rows: str, *more: str, method: str = "bag-gp") -> Result:
    fast = {"bag-gp": ["--set", "draws=0"], "auto": ["--set", "trees=200", "--set", "rounds=2"]}.get(method, [])
    return llpbench("fit", rows, *GIVEN, *fast, "--leave-out", "gap", "--method", method, "--out", "model", *more)


WAYS = ("out-of-core", "in-memory")


def demand_same_files(folder: Path) -> pd.DataFrame:
    """Require that both ways wrote the same but for rounding: batches are added up in another order. Return one."""
    one, other = (pd.read_csv(folder / f"{way}.csv") for way in WAYS)
    pd.testing.assert_frame_equal(one, other, atol=1e-6)
    one, other = (pd.read_parquet(folder / f"{way}.parquet") for way in WAYS)
    pd.testing.assert_frame_equal(one, other, atol=1e-6)
    return one


@pytest.mark.parametrize(
    ("rows", "bag"),
    [("parts", []), ("rows.csv", ["--bag-column", "district"]), ("parts/*.parquet", ["--bag-column", "district"])],
)
def test_streamed_predictions_equal_in_memory(folder: Path, llpbench: LLPBench, rows: str, bag: list[str]) -> None:
    done(fit(llpbench, rows, "--out-of-core"))
    for ending in ("csv", "parquet"):
        for way in WAYS:
            done(llpbench("predict", "model", rows, *bag, f"--{way}", "--out", f"{way}.{ending}"))
    assert len(demand_same_files(folder)) == 600
    assert not list(folder.glob(".*"))


WHOLE = ["predict", "model", "--bag-column", "district", "--whole-bags"]
GROUPS = ["estimate", "model", "--bag-column", "district", "--by", "town,owns"]


@pytest.mark.parametrize("command", [WHOLE, GROUPS])
@pytest.mark.parametrize(
    ("rows", "bags", "method"),
    [("parts", [], "bag-gp"), ("rows.csv.gz", ["--bags", "bags.csv", "--counts", "no,yes"], "auto")],
)
def test_streamed_whole_bags_equal_in_memory(
    folder: Path,
    llpbench: LLPBench,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    rows: str,
    bags: list[str],
    method: str,
) -> None:
    """Bags are processed in several pieces, more than are kept in memory; the counts of one are unknown."""
    monkeypatch.setattr(bag_effects, "PIECE_ROWS", 64)
    monkeypatch.setattr(group_estimates, "_PIECES_IN_MEMORY", 2)
    every = pd.read_csv("rows.csv").assign(people=lambda rows: 1 + rows["id"] % 3)
    every.sample(frac=1, random_state=0).to_csv("rows.csv.gz", index=False)
    table = pd.read_csv("bags.csv").set_index("district")
    if weights := ["--weight-column", "people"] * bool(bags):
        total = every.groupby("district")["people"].sum()
        yes = (total * table["yes"] / table.sum(axis=1)).round().astype(int)
        table = pd.DataFrame({"no": total - yes, "yes": yes})
    table.drop("d07").reindex(table.index).to_csv("bags.csv")
    assert fit(llpbench, rows, "--out-of-core", *weights, method=method).code == 0
    told = {}
    for ending in ("csv", "parquet"):
        for way in WAYS:
            result = done(llpbench(*command, rows, *bags, *weights, f"--{way}", "--out", f"{way}.{ending}"))
            told[way] = result.out.replace(way, "")
    assert told["out-of-core"] == told["in-memory"]
    one = demand_same_files(folder)
    if command is WHOLE:
        sums = one.groupby("district")["count_yes" if weights else "probability_yes"].sum()
        assert np.allclose(sums.drop("d07"), table["yes"].drop("d07"))
        assert not np.isclose(sums["d07"], round(sums["d07"]))
    else:
        assert len(one) > 100
    assert not list(folder.glob(".*"))


@pytest.mark.usefixtures("folder")
def test_large_rows_are_read_in_batches_by_default(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_options, "LARGE", 1000)
    assert "in batches" in fit(llpbench, "parts", method="bag-mean-linear").err
    assert "in batches" not in fit(llpbench, "parts", "--in-memory", method="bag-mean-linear").err
    assert "in batches" in llpbench("predict", "model", "rows.csv", "--out", "new.csv").err


@pytest.mark.usefixtures("folder")
def test_batch_of_unknown_bags_among_known_ones_is_not_warned_of(llpbench: LLPBench) -> None:
    assert fit(llpbench, "parts", method="bag-mean-linear").code == 0
    for known in (470, 0):
        rows = pd.read_csv("rows.csv")
        rows.assign(district=rows["district"].where(rows.index < known, "new")).to_csv("new.csv", index=False)
        result = llpbench("predict", "model", "new.csv", "--bag-column", "district", "--out-of-core", "--out", "p.csv")
        assert (result.code, "were not in fit" in result.err) == (0, known == 0)


def test_broken_part_is_named_and_leaves_no_file(folder: Path, llpbench: LLPBench) -> None:
    assert fit(llpbench, "parts").code == 0
    table = pd.read_parquet(folder / "parts" / "2.parquet")
    for broken in (table.assign(age="old"), table.drop(columns="age"), table.assign(age=np.inf)):
        broken.to_parquet(folder / "parts" / "2.parquet", index=False)
        result = llpbench("predict", "model", "parts", "--out-of-core", "--out", "new.parquet")
        assert result.code == 2
        assert "2.parquet" in result.err
        assert "age" in result.err
        assert not [*folder.glob("*new.parquet*"), *folder.glob(".*")]


@pytest.mark.parametrize("more", [[], ["--weight-column", "weight"], ["--keep-key"], ["--drop-unmatched"]])
@pytest.mark.usefixtures("folder")
def test_fit_out_of_core_equals_fit_in_memory_if_all_rows_fit(llpbench: LLPBench, more: list[str]) -> None:
    table = pd.read_csv("rows.csv").assign(weight=1)
    table.loc[::50, "district"] = None if "--drop-unmatched" in more else table["district"][::50]
    table.to_csv("rows.csv", index=False)
    rest = pd.crosstab(table["district"], table["owns"]).set_axis(["no", "yes"], axis=1).reset_index()
    rest.astype({"no": object}).assign(yes=rest["yes"].where(rest.index != 3)).to_csv("bags.csv", index=False)
    found = {}
    for way in WAYS:
        result = fit(llpbench, "rows.csv", f"--{way}", *more, method="bag-mean-linear")
        assert (result.code, "missing counts" in result.err) == (0, True)
        assert llpbench("predict", "model", "rows.csv", "--bag-column", "district", "--out", "new.csv").code == 0
        found[way] = pd.read_csv("new.csv")
    pd.testing.assert_frame_equal(*found.values(), check_exact=True)


def test_sample_has_all_rows_of_random_bags_and_is_reported(folder: Path, llpbench: LLPBench) -> None:
    every = pd.read_csv("rows.csv").sample(frac=1, random_state=0)
    every.to_csv("rows.csv", index=False)
    result = done(fit(llpbench, "rows.csv", "--out-of-core", "--most-rows", "300", method="bag-mean-linear"))
    model = LLPClassifier.load(folder / "model")
    sizes = every["district"].value_counts()
    assert 250 < model.bag_sizes_.sum() <= 300
    assert model.bag_sizes_.tolist() == sizes[model.bags_].tolist()
    assert model.bags_.tolist() != sorted(sizes.index)[: len(model.bags_)]
    assert f"{model.bag_sizes_.sum()} of 600 rows, in {len(model.bags_)} of 30 bags" in result.err
    other = fit(llpbench, "rows.csv", "--out-of-core", "--most-rows", "300", "--seed", "1", method="bag-mean-linear")
    assert other.code == 0
    assert LLPClassifier.load(folder / "model").bags_.tolist() != model.bags_.tolist()
    assert "--most-rows" in refused(fit(llpbench, "rows.csv", "--out-of-core", "--most-rows", "20"))


def test_sample_does_not_hide_rows_of_unknown_bags(llpbench: LLPBench, folder: Path) -> None:
    pd.read_csv("bags.csv")[:-1].to_csv("bags.csv", index=False)
    sampled = ["--out-of-core", "--most-rows", "300"]
    assert "--drop-unmatched" in refused(fit(llpbench, "rows.csv", *sampled))
    assert fit(llpbench, "rows.csv", *sampled, "--drop-unmatched", method="bag-mean-linear").code == 0
    assert "d29" not in LLPClassifier.load(folder / "model").bags_.tolist()

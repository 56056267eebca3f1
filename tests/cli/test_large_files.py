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

pytestmark = pytest.mark.usefixtures("folder")
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


def both_ways(llpbench: LLPBench, *command: str) -> pd.DataFrame:
    """Require that a command tells and writes the same in both ways but for rounding: the order of sums differs."""
    for ending, read in (("parquet", pd.read_parquet), ("csv", pd.read_csv)):
        told = {way: done(llpbench(*command, f"--{way}", "--out", f"{way}.{ending}")).out for way in WAYS}
        assert told["out-of-core"].replace("out-of-core", "in-memory") == told["in-memory"]
        one, other = (read(f"{way}.{ending}") for way in WAYS)
        pd.testing.assert_frame_equal(one, other, atol=1e-6)
    assert not list(Path().glob(".*"))
    return one


BAG = ["--bag-column", "district"]


@pytest.mark.parametrize(("rows", "bag"), [("parts", []), ("rows.csv", BAG), ("parts/*.parquet", BAG)])
def test_streamed_predictions_equal_in_memory(llpbench: LLPBench, rows: str, bag: list[str]) -> None:
    done(fit(llpbench, rows, "--out-of-core"))
    assert len(both_ways(llpbench, "predict", "model", rows, *bag)) == 600


@pytest.mark.parametrize("command", ["predict", "estimate"])
@pytest.mark.parametrize("weights", [[], ["--weight-column", "people"]], ids=["plain", "weights"])
def test_streamed_whole_bags_equal_in_memory(
    llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch, command: str, weights: list[str]
) -> None:
    """Bags are processed in several pieces, more than are kept in memory; the counts of one are unknown."""
    monkeypatch.setattr(bag_effects, "PIECE_ROWS", 64)
    monkeypatch.setattr(group_estimates, "_PIECES_IN_MEMORY", 2)
    rows, bags, method, table = "parts", [], "bag-gp", pd.read_csv("bags.csv").set_index("district")
    if weights:
        rows, bags, method = "rows.csv.gz", ["--bags", "bags.csv", "--counts", "no,yes"], "auto"
        every = pd.read_csv("rows.csv").assign(people=lambda rows: 1 + rows["id"] % 3)
        every.sample(frac=1, random_state=0).to_csv(rows, index=False)
        total = every.groupby("district")["people"].sum()
        yes = (total * table["yes"] / table.sum(axis=1)).round().astype(int)
        table = pd.DataFrame({"no": total - yes, "yes": yes})
    table.drop("d07").reindex(table.index).to_csv("bags.csv")
    done(fit(llpbench, rows, "--out-of-core", *weights, method=method))
    what = ["--whole-bags"] if command == "predict" else ["--by", "town,owns"]
    one = both_ways(llpbench, command, "model", rows, *BAG, *what, *bags, *weights)
    if command == "predict":
        sums = one.groupby("district")["count_yes" if weights else "probability_yes"].sum()
        assert np.allclose(sums.drop("d07"), table["yes"].drop("d07"))
        assert not np.isclose(sums["d07"], round(sums["d07"]))
    else:
        assert len(one) > 100


def test_large_rows_are_read_in_batches_by_default(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_options, "LARGE", 1000)
    assert "in batches" in fit(llpbench, "parts", method="bag-mean-linear").err
    assert "in batches" not in fit(llpbench, "parts", "--in-memory", method="bag-mean-linear").err
    assert "in batches" in llpbench("predict", "model", "rows.csv", "--out", "new.csv").err


def test_batch_of_unknown_bags_among_known_ones_is_not_warned_of(llpbench: LLPBench) -> None:
    done(fit(llpbench, "parts", method="bag-mean-linear"))
    for known in (470, 0):
        rows = pd.read_csv("rows.csv")
        rows.assign(district=rows["district"].where(rows.index < known, "new")).to_csv("new.csv", index=False)
        result = done(llpbench("predict", "model", "new.csv", *BAG, "--out-of-core", "--out", "p.csv"))
        assert ("were not in fit" in result.err) == (known == 0)


def test_broken_part_is_named_and_leaves_no_file(folder: Path, llpbench: LLPBench) -> None:
    done(fit(llpbench, "parts", method="bag-mean-linear"))
    table = pd.read_parquet("parts/2.parquet")
    for broken in (table.assign(age="old"), table.drop(columns="age"), table.assign(age=np.inf)):
        broken.to_parquet("parts/2.parquet", index=False)
        message = refused(llpbench("predict", "model", "parts", "--out-of-core", "--out", "new.parquet"))
        assert ("2.parquet" in message, "age" in message) == (True, True)
        assert not [*folder.glob("*new.parquet*"), *folder.glob(".*")]


@pytest.mark.parametrize("more", [[], ["--weight-column", "weight"], ["--keep-key"], ["--drop-unmatched"]])
def test_fit_out_of_core_equals_fit_in_memory_if_all_rows_fit(llpbench: LLPBench, more: list[str]) -> None:
    table = pd.read_csv("rows.csv").assign(weight=1)
    table.loc[::50, "district"] = None if "--drop-unmatched" in more else table["district"][::50]
    table.to_csv("rows.csv", index=False)
    rest = pd.crosstab(table["district"], table["owns"]).set_axis(["no", "yes"], axis=1).reset_index()
    rest.astype({"no": object}).assign(yes=rest["yes"].where(rest.index != 3)).to_csv("bags.csv", index=False)
    found = []
    for way in WAYS:
        assert "missing counts" in done(fit(llpbench, "rows.csv", f"--{way}", *more, method="bag-mean-linear")).err
        done(llpbench("predict", "model", "rows.csv", *BAG, "--out", "new.csv"))
        found.append(pd.read_csv("new.csv"))
    pd.testing.assert_frame_equal(*found, check_exact=True)


def test_sample_has_all_rows_of_random_bags_and_is_reported(llpbench: LLPBench) -> None:
    def sampled(*flags: str, most: int = 300) -> Result:
        how = ["--out-of-core", "--most-rows", str(most), *flags]
        return fit(llpbench, "rows.csv", *how, method="bag-mean-linear")

    every = pd.read_csv("rows.csv").sample(frac=1, random_state=0)
    every.to_csv("rows.csv", index=False)
    result, model, sizes = done(sampled()), LLPClassifier.load("model"), every["district"].value_counts()
    assert 250 < model.bag_sizes_.sum() <= 300
    assert model.bag_sizes_.tolist() == sizes[model.bags_].tolist()
    assert model.bags_.tolist() != sorted(sizes.index)[: len(model.bags_)]
    assert f"{model.bag_sizes_.sum()} of 600 rows, in {len(model.bags_)} of 30 bags" in result.err
    done(sampled("--seed", "1"))
    assert LLPClassifier.load("model").bags_.tolist() != model.bags_.tolist()
    assert "--most-rows" in refused(sampled(most=20))
    pd.read_csv("bags.csv")[:-1].to_csv("bags.csv", index=False)  # a sample does not hide rows of unknown bags
    assert "--drop-unmatched" in refused(sampled())
    done(sampled("--drop-unmatched"))
    assert "d29" not in LLPClassifier.load("model").bags_.tolist()

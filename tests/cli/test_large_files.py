"""`llpbench fit --out-of-core` and `predict --out-of-core`, from files to files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, Result, done, refused
from districts import rewritten

from llpbench import LLPClassifier
from llpbench.blocks import components
from llpbench.cli import reading_options
from llpbench.owndata import bag_effects, group_estimates
from llpbench.tables import row_files

BAG, WAYS = ["--bag-column", "district"], ("out-of-core", "in-memory")
GIVEN = ["--bags", "bags.csv", *BAG, "--counts", "no,yes", "--leave-out", "id"]


@pytest.fixture(autouse=True)
def parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows also as three parts of parquet, two with a column of gaps; small batches, and pieces more than in memory."""
    number = pd.Series(range(300), dtype="Int64")
    rows = rewritten(folder / "rows.csv", lambda rows: rows.assign(gap=number.mask(number < 200)))
    (folder / "parts").mkdir()
    for part in range(3):
        rows[100 * part : 100 * part + 100].to_parquet(folder / "parts" / f"{part}.parquet", index=False)
    monkeypatch.setattr(row_files, "BATCH_ROWS", 64)
    monkeypatch.setattr(components, "_CHUNK", 64)  # rows that are computed together, in memory, too
    monkeypatch.setattr(bag_effects, "PIECE_ROWS", 32)
    monkeypatch.setattr(group_estimates, "_PIECES_IN_MEMORY", 2)


def fit(llpbench: LLPBench, rows: str, *more: str, method: str = "bag-gp") -> Result:
    fast = {"bag-gp": ["--set", "draws=0"], "auto": ["--set", "trees=200", "--set", "rounds=2"]}.get(method, [])
    return llpbench("fit", rows, *GIVEN, *fast, "--leave-out", "gap", "--method", method, "--out", "model", *more)


def both_ways(llpbench: LLPBench, *command: str) -> pd.DataFrame:
    """Require that a command tells and writes the same in both ways but for rounding: the order of sums differs."""
    for ending, read in (("parquet", pd.read_parquet), ("csv", pd.read_csv)):
        told = {way: done(llpbench(*command, f"--{way}", "--out", f"{way}.{ending}")).out for way in WAYS}
        assert told["out-of-core"].replace("out-of-core", "in-memory") == told["in-memory"]
        one, other = (read(f"{way}.{ending}") for way in WAYS)
        pd.testing.assert_frame_equal(one, other, atol=1e-6)
    assert not list(Path().glob(".*"))
    return one


@pytest.mark.parametrize(("rows", "bag"), [("parts", []), ("rows.csv", BAG), ("parts/*.parquet", BAG)])
def test_streamed_predictions_equal_in_memory(llpbench: LLPBench, rows: str, bag: list[str]) -> None:
    done(fit(llpbench, rows, "--out-of-core"))
    assert len(both_ways(llpbench, "predict", "model", rows, *bag)) == 300


@pytest.mark.parametrize("command", ["predict", "estimate"])
@pytest.mark.parametrize("weights", [[], ["--weight-column", "people"]], ids=["plain", "weights"])
def test_streamed_whole_bags_equal_in_memory(llpbench: LLPBench, command: str, weights: list[str]) -> None:
    """The counts of a bag are unknown."""
    rows, bags, method, table = "parts", [], "bag-gp", pd.read_csv("bags.csv").set_index("district")
    if weights:
        rows, bags, method = "rows.csv.gz", ["--bags", "bags.csv", "--counts", "no,yes"], "auto"
        every = pd.read_csv("rows.csv").assign(people=lambda rows: 1 + rows["id"] % 3)
        every.sample(frac=1, random_state=0).to_csv(rows, index=False)
        total = every.groupby("district")["people"].sum()
        yes = (total * table["yes"] / table.sum(axis=1)).round().astype(int)
        table = pd.DataFrame({"no": total - yes, "yes": yes})
    table.drop(7).reindex(table.index).to_csv("bags.csv")
    done(fit(llpbench, rows, "--out-of-core", *weights, method=method))
    what = ["--whole-bags"] if command == "predict" else ["--by", "town,owns"]
    one = both_ways(llpbench, command, "model", rows, *BAG, *what, *bags, *weights)
    if command == "predict":
        sums = one.groupby("district")["count_yes" if weights else "probability_yes"].sum()
        assert np.allclose(sums.drop(7), table["yes"].drop(7))
        assert not np.isclose(sums[7], round(sums[7]))
    else:
        assert len(one) > 100


def test_large_rows_are_read_in_batches_by_default(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_options, "LARGE", 1000)
    for way, batches in ([], True), (["--in-memory"], False):
        assert ("in batches" in fit(llpbench, "parts", *way, method="bag-mean-linear").err) == batches
    assert "in batches" in llpbench("predict", "model", "rows.csv", "--out", "new.csv").err


def test_batch_of_unknown_bags_among_known_ones_is_not_warned_of(llpbench: LLPBench) -> None:
    done(fit(llpbench, "parts", method="bag-mean-linear"))
    rows = pd.read_csv("rows.csv")
    for known in (235, 0):
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


@pytest.mark.parametrize("more", [[], ["--weight-column", "weight"], ["--keep-key"], ["--drop-unmatched"]], ids=str)
def test_fit_out_of_core_equals_fit_in_memory_if_all_rows_fit(llpbench: LLPBench, more: list[str]) -> None:
    lost = (np.arange(300) % 50 == 0) & ("--drop-unmatched" in more)
    table = rewritten("rows.csv", lambda rows: rows.assign(weight=1, district=rows["district"].mask(lost)))
    rest = pd.crosstab(table["district"], table["owns"]).set_axis(["no", "yes"], axis=1).reset_index()
    rest.astype({"no": object}).assign(yes=rest["yes"].where(rest.index != 3)).to_csv("bags.csv", index=False)
    found = []
    for way in WAYS:
        assert "missing counts" in done(fit(llpbench, "rows.csv", f"--{way}", *more, method="bag-mean-linear")).err
        done(llpbench("predict", "model", "rows.csv", *BAG, "--out", "new.csv"))
        found.append(pd.read_csv("new.csv"))
    pd.testing.assert_frame_equal(*found, check_exact=True)


def test_sample_has_all_rows_of_random_bags_and_is_reported(llpbench: LLPBench) -> None:
    def sampled(*flags: str, most: int = 150) -> Result:
        how = ["--out-of-core", "--most-rows", str(most), *flags]
        return fit(llpbench, "rows.csv", *how, method="bag-mean-linear")

    every = rewritten("rows.csv", lambda rows: rows.sample(frac=1, random_state=0))
    result, model, sizes = done(sampled()), LLPClassifier.load("model"), every["district"].astype(str).value_counts()
    assert 120 < model.bag_sizes_.sum() <= 150
    assert model.bag_sizes_.tolist() == sizes[model.bags_].tolist()
    assert model.bags_.tolist() != sorted(sizes.index)[: len(model.bags_)]
    assert f"{model.bag_sizes_.sum()} of 300 rows, in {len(model.bags_)} of 12 bags" in result.err
    done(sampled("--seed", "1"))
    assert LLPClassifier.load("model").bags_.tolist() != model.bags_.tolist()
    assert "--most-rows" in refused(sampled(most=20))
    rewritten("bags.csv", lambda table: table[:-1])  # a sample does not hide rows of unknown bags
    assert "--drop-unmatched" in refused(sampled())
    done(sampled("--drop-unmatched"))
    assert "11" not in LLPClassifier.load("model").bags_.tolist()
    rewritten("rows.csv", lambda rows: rows.assign(district=rows["district"].mask(rows["district"] == 11)))
    rewritten("bags.csv", lambda table: pd.concat([table, table[:1].assign(district=None)]))
    assert f"{(every['district'] == 11).sum()} of 300 rows have no bag" in refused(sampled())

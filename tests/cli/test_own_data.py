"""`llpbench fit`, `predict` and `choose`, from files to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done, refused, replaced
from districts import counted

from llpbench import LLPClassifier

pytestmark = pytest.mark.usefixtures("folder")
FIT = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--out", "model"]
LINEAR, QUICK = ["--method", "bag-mean-linear"], ["--method", "count-gbdt", "--set", "trees=100", "--leave-out", "id"]
WHOLE = ["--bag-column", "district", "--whole-bags"]


def predicted(llpbench: LLPBench, *flags: str, model: str = "model", rows: str = "rows.csv") -> pd.DataFrame:
    """The table that `predict` writes."""
    done(llpbench("predict", model, rows, *flags, "--out", "new.csv"))
    return pd.read_csv("new.csv")


def test_fit_and_predict_from_files(llpbench: LLPBench) -> None:
    result = done(llpbench(*FIT, *QUICK, "--numbers", "scores"))
    assert "count-gbdt, 300 rows in 12 bags, 4 features, classes no, yes: fitted in" in result.out
    done(llpbench("predict", "model", "rows.csv", "--out", "new.parquet"))
    found, model = pd.read_parquet("new.parquet"), LLPClassifier.load("model")
    assert list(found.columns) == ["district", "id", "prediction", "probability_no", "probability_yes"]
    assert model.numbers == "scores"
    rows = pd.read_csv("rows.csv")[["age", "owns", "town", "job"]]
    assert np.allclose(found["probability_yes"], model.predict_proba(rows)[:, 1])


def test_other_columns_are_written_unchanged(llpbench: LLPBench) -> None:
    rows = pd.read_csv("rows.csv")
    asis = {"id": rows["id"].map("{:06d}".format), "district": rows["district"].map("{:03d}".format)}
    asis |= {"country": "NA", "share": "1.50", "note": "", "=1+1": "@sum"}
    rows.assign(**asis).to_csv("other.csv", index=False)
    done(llpbench("predict", "fitted", "other.csv", "--out", "new.csv"))
    found = pd.read_csv("new.csv", dtype=str, keep_default_na=False)
    guarded = pd.DataFrame(asis).rename(columns={"=1+1": "'=1+1"}).replace("@sum", "'@sum")
    assert found[[*guarded]].equals(guarded.astype(found["id"].dtype))


def test_whole_bag_labels_match_counts(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and probabilities come from one prediction."""
    predict, calls = LLPClassifier._predicted, []

    def noted(self: LLPClassifier, rows: Any) -> Any:
        calls.append(len(rows.numeric))
        return predict(self, rows)

    done(llpbench("fit", "rows.parquet", "--bags", "bags.parquet", *FIT[4:], *QUICK))  # a frame's index is a column
    monkeypatch.setattr(LLPClassifier, "_predicted", noted)
    for other in ([], ["--bags", "bags.csv", "--proportions", "share"]):
        table = pd.read_csv("bags.csv")
        table.assign(share=table["yes"] / (table["yes"] + table["no"])).to_csv("bags.csv", index=False)
        found = predicted(llpbench, *WHOLE, *other)
        assert (counted(found["district"], found["prediction"])["yes"].to_numpy() == table["yes"]).all()
        assert np.allclose(found.groupby("district")["probability_yes"].sum(), table["yes"], atol=1e-6)
    assert calls == [300, 300]


def test_all_forms_of_bag_tables_are_equal(llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv")
    size = table["no"] + table["yes"]
    long = table.assign(size=size).melt(["district", "size"], var_name="party", value_name="votes").query("votes > 0")
    long.to_csv("long.csv", index=False)
    table.assign(no=table["no"] / size, yes=table["yes"] / size, size=size).to_csv("share.csv", index=False)
    table.assign(size=3 * size, no=3 * table["no"], yes=3 * table["yes"]).to_csv("thrice.csv", index=False)
    found = []
    for flags in (
        ["--bags", "bags.csv", "--counts", "no,yes"],
        ["--bags", "long.csv", "--counts", "votes", "--class-column", "party", "--size-column", "size"],
        ["--bags", "share.csv", "--proportions", "no,yes", "--size-column", "size"],
        ["--bags", "share.csv", "--proportions", "yes"],
        ["--bags", "thrice.csv", "--counts", "no,yes", "--sampled"],
        ["--bags", "thrice.csv", "--counts", "yes", "--size-column", "size", "--classes", "no,yes", "--sampled"],
    ):
        done(llpbench(*FIT[:2], *flags, *FIT[4:6], *FIT[8:], *LINEAR, "--leave-out", "id"))
        found.append(predicted(llpbench)["probability_yes"])
        assert np.allclose(found[-1], found[0])


def test_keys_and_texts_are_read_unchanged(llpbench: LLPBench) -> None:
    """01 is not 1, NA is Namibia, 3.0 is 3; and a text that looks like a number is the one that fit saw."""
    names = {0: "NA", 1: "01", 2: "1", 3: "3.0"}
    rows, table = pd.read_csv("rows.csv"), pd.read_csv("bags.csv")
    rows = rows.assign(zip=[f"0{number % 3}" if number % 5 else "none" for number in range(300)])
    rows["district"] = rows["district"].map(names).fillna("x")
    rows.to_csv("rows.csv", index=False)
    table.groupby(table.pop("district").map({**names, 3: "3"}).fillna("x")).sum().to_csv("bags.csv")
    done(llpbench(*FIT, *QUICK))
    assert LLPClassifier.load("model").bags_.tolist() == ["01", "1", "3", "NA", "x"]
    some = rows["zip"] != "none"
    rows[some].to_csv("some.csv", index=False)
    found, expected = (predicted(llpbench, rows=name)["probability_yes"] for name in ("some.csv", "rows.csv"))
    assert np.allclose(found, expected[some], atol=1e-6)  # other batches


def test_dropped_columns_are_named(llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv").astype({"yes": float}).replace({"district": {4: 77}})
    table["yes"] += [1, np.nan, np.nan, *[0] * 9]
    table.to_csv("bags.csv", index=False)
    lost = (pd.read_csv("rows.csv")["district"] == 4).sum()
    result = done(llpbench(*FIT, *QUICK, "--drop-unmatched", "--suppress-impossible"))
    assert f"dropped: {lost} rows without a known bag, 1 bag without rows" in result.out
    assert "suppressed: 2 bags" in result.out
    assert "suppressed: 1 bag with counts" in result.out


CHOOSE = ["choose", *FIT[1:-2], "--methods", "bag-mean-linear,bag-soft-label-linear", "--leave-out", "id"]


def test_choose_compares_on_held_out_bags_and_names_a_failed_method(llpbench: LLPBench, plugin: Path) -> None:
    more = ["--plugin", str(plugin), "--methods", "bag-mean-linear,bag-soft-label-linear,broken"]
    result = llpbench(*replaced(CHOOSE, more), "--repeats", "1", "--folds", "4")
    assert (result.code, "Traceback" in result.err) == (1, False), result.err
    assert "Use bag-mean-linear" in result.out
    assert all(name in result.out for name in ("bag-mean-linear", "bag-soft-label-linear", "bag-share"))
    assert "no luck (tiny_bench.py:" in " ".join(result.out.split())


@pytest.mark.parametrize("keys", [["district"], ["district", "half"]])
def test_files_match_numeric_bags_of_python(keys: list[str], llpbench: LLPBench) -> None:
    rows = pd.read_csv("rows.csv").assign(half=lambda frame: frame["id"] // 150)
    rows.to_csv("rows.csv", index=False)
    features, bags = rows[["age", "owns", "town", "job"]], rows[keys if len(keys) > 1 else keys[0]]
    votes = (rows["age"] > 50).groupby([rows[key] for key in keys]).sum()
    model = LLPClassifier("bag-mean-linear").fit(features, bags, counts=votes)
    model.save("model")
    for flags, wanted in ([], model.predict_proba(features, bags)), (WHOLE[2:], model.disaggregate(features, bags)):
        found = predicted(llpbench, "--bag-column", "+".join(keys), *flags)
        assert np.allclose(found[["probability_0", "probability_1"]], wanted, atol=1e-9)
    asked = ["predict", "model", "rows.csv", "--bag-column", "district+id+job", "--out", "new.csv"]
    assert f"as in fit ({len(keys)}, as in" in refused(llpbench(*asked))


@pytest.mark.parametrize("column", ["day", "week"])
def test_time_column_holds_out_later_bags(column: str, llpbench: LLPBench) -> None:
    rows, table = pd.read_csv("rows.csv"), pd.read_csv("bags.csv")
    rows.assign(day=(rows["district"] + 1).map("2024-01-{:02}".format)).to_csv("rows.csv", index=False)
    table.assign(week=11 - table["district"]).to_csv("bags.csv", index=False)
    result = done(llpbench(*CHOOSE, "--folds", "2", "--time-column", column))
    assert "later" in result.out
    assert ("'day'" in result.err) == (column != "day")  # a feature that names the bags, unless it is their time


def test_bags_may_call_their_key_otherwise(llpbench: LLPBench) -> None:
    pd.read_csv("bags.csv").rename(columns={"district": "precinct"}).to_csv("bags.csv", index=False)
    predict = ["predict", "model", *FIT[1:-1], "new.csv", "--whole-bags"]
    for command in ([*FIT, *QUICK], predict):
        assert "--bag-column district=NAME" in refused(llpbench(*command))
        done(llpbench(*replaced(command, ["--bag-column", "district=precinct"])))
    assert len(LLPClassifier.load("model").bags_) == 12
    rows = pd.read_csv("rows.csv")
    rows.assign(district=rows["district"].map("{:03d}".format)).to_csv("rows.csv", index=False)
    assert "'001' is nearly '1'" in llpbench("predict", "model", "rows.csv", *WHOLE, "--out", "new.csv").err


def test_lines_of_several_years_name_the_column(llpbench: LLPBench) -> None:
    table, rows = pd.read_csv("bags.csv"), pd.read_csv("rows.csv")
    pd.concat([table.assign(year=2019), table.assign(year=2020)]).to_csv("bags.csv", index=False)
    assert "'year'" in llpbench(*FIT).err
    rows.assign(year=2019).to_csv("rows.csv", index=False)
    assert "--bag-column district+year" in llpbench(*FIT).err
    swapped = {"rows.csv": "bags.csv", "bags.csv": "rows.csv"}
    assert "--bags" in llpbench(*(swapped.get(part, part) for part in FIT)).err


@pytest.fixture
def rows(folder: Path) -> pd.DataFrame:
    """Rows in the working directory, with two tables of bags, the second one by two columns."""
    rows = pd.read_csv(folder / "rows.csv").drop(columns="id")
    rows = rows.assign(home=np.where(rows["owns"], "own", "rent"), half=np.arange(300) % 2)
    votes = np.where(rows["age"] > 50, "yes", "no")
    counted(rows["district"], votes).to_csv("a.csv")
    counted([rows["home"], rows["half"]], votes).to_csv("b.csv")
    rows.to_csv("rows.csv", index=False)
    return rows


BOTH = ["--bags", "a.csv", "--bag-column", "district", "--bags", "b.csv", "--bag-column", "home+half"]
FIT_BOTH = [*FIT[:2], *BOTH, *FIT[6:], *LINEAR]


def test_rows_without_bag_in_one_grouping_are_counted_once(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    rows.assign(home=rows["home"].mask(rows.index < 60)).to_csv("rows.csv", index=False)
    assert "60 of 300 rows" in refused(llpbench(*FIT_BOTH))
    rows.to_csv("rows.csv", index=False)
    pd.read_csv("b.csv").iloc[1:].to_csv("b.csv", index=False)
    dropped = ((rows["home"] == "own") & (rows["half"] == 0)).sum()
    for name in ("strength", "bag-mean-linear.strength"):
        result = done(llpbench(*FIT_BOTH, "--drop-unmatched", "--set", f"{name}=2"))
        assert f"dropped: {dropped} rows" in result.out
        assert "300 rows in 15 bags" in result.out
        assert float((LLPClassifier.load("model").params or {})["strength"]) == 2


@pytest.mark.usefixtures("rows")
def test_two_groupings_in_files_are_used(llpbench: LLPBench) -> None:
    assert "300 rows in 16 bags" in done(llpbench(*FIT_BOTH)).out
    model = LLPClassifier.load("model")
    assert ("own", "0") in {*model.bags_}
    assert [*model.feature_names_in_] == ["age", "owns", "town", "job"]
    assert not {*model.key_features_} & {*model.feature_names_in_}
    assert len(predicted(llpbench)) == 300
    for name, keys in ("a", ["district"]), ("b", ["home", "half"]):  # labels of one part, and of two
        found = predicted(llpbench, "--bag-column", "+".join(keys), "--whole-bags")
        expected = pd.read_csv(f"{name}.csv").set_index(keys)["yes"].sort_index()
        assert np.allclose(found.groupby(keys)["probability_yes"].sum(), expected)
    for more in (["--out-of-core"], ["--method", "dllp"]):
        refused(llpbench(*replaced(FIT_BOTH, more)))


def test_counts_file_with_ranges_is_read(llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv").drop(columns="no").sort_values("district", key=lambda column: column.astype(str))
    yes, small = table["yes"], table["yes"] < 8
    table.astype({"yes": object}).mask(small, table.assign(yes="<8")).to_csv("bags.csv", index=False)
    ranges = [*replaced(FIT, ["--counts", "yes"]), *LINEAR]
    assert "'<8'" in done(llpbench(*ranges)).err
    known = LLPClassifier.load("model").bag_counts_[:, 1]
    assert (known[~small] == yes[~small]).all()
    assert (known[small] < 7).all()
    assert "'<8'" not in llpbench(*ranges, "--suppressed", "<8").err
    assert np.isnan(LLPClassifier.load("model").bag_counts_[small]).all()
    assert llpbench(*ranges, "--noise", "2").code == 2

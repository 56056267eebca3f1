"""`llpbench fit`, `predict`, `choose` and `estimate`, from files to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done, refused
from districts import counted

from llpbench import LLPClassifier

FIT = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--out", "model"]
ASK = ["estimate", "process", "zones.csv", "--bag-column", "district", "--out", "groups.csv"]
QUICK = ["--method", "count-gbdt", "--set", "trees=100", "--leave-out", "id"]


def test_fit_and_predict_from_files(folder: Path, llpbench: LLPBench) -> None:
    result = done(llpbench(*FIT, *QUICK, "--numbers", "scores"))
    assert "count-gbdt, 300 rows in 12 bags, 4 features, classes no, yes: fitted in" in result.out
    done(llpbench("predict", "model", "rows.csv", "--out", "new.parquet"))
    found = pd.read_parquet(folder / "new.parquet")
    assert list(found.columns) == ["district", "id", "prediction", "probability_no", "probability_yes"]
    rows = pd.read_csv(folder / "rows.csv")
    model = LLPClassifier.load(folder / "model")
    assert model.numbers == "scores"
    assert np.allclose(found["probability_yes"], model.predict_proba(rows[["age", "owns", "town", "job"]])[:, 1])


def test_other_columns_are_written_unchanged(folder: Path, llpbench: LLPBench) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    asis = {
        "id": [f"{number:06d}" for number in range(300)],
        "district": rows["district"].map("{:03d}".format),
        "country": "NA",
        "share": "1.50",
        "note": "",
        "=1+1": "@sum",
    }
    rows.assign(**asis).to_csv(folder / "new.csv", index=False)
    assert llpbench("predict", "fitted", "new.csv", "--out", "predicted.csv").code == 0
    found = pd.read_csv(folder / "predicted.csv", dtype=str, keep_default_na=False)
    guarded = pd.DataFrame(asis).rename(columns={"=1+1": "'=1+1"}).replace("@sum", "'@sum")
    assert found[[*guarded]].equals(guarded.astype(found["id"].dtype))


def test_whole_bag_labels_match_counts(folder: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    predicted, calls = LLPClassifier._predicted, []

    def noted(self: LLPClassifier, rows: Any) -> Any:
        calls.append(len(rows.numeric))
        return predicted(self, rows)

    files = ["fit", "rows.parquet", "--bags", "bags.parquet", *FIT[4:]]
    assert llpbench(*files, *QUICK).code == 0  # "id" was the index of a frame, and is a column
    monkeypatch.setattr(LLPClassifier, "_predicted", noted)
    for other in ([], ["--bags", "bags.csv", "--proportions", "share"]):
        table = pd.read_csv(folder / "bags.csv")
        table.assign(share=table["yes"] / (table["yes"] + table["no"])).to_csv(folder / "bags.csv", index=False)
        done(
            llpbench(
                "predict", "model", "rows.csv", "--bag-column", "district", "--whole-bags", *other, "--out", "new.csv"
            )
        )
        found = pd.read_csv(folder / "new.csv")
        assert (counted(found["district"], found["prediction"])["yes"].to_numpy() == table["yes"]).all()
        assert np.allclose(found.groupby("district")["probability_yes"].sum(), table["yes"], atol=1e-6)
    assert calls == [300, 300], "labels and probabilities come from one prediction"


def fitted_proba(llpbench: LLPBench, *flags: str) -> Any:
    """Probabilities of all rows by the linear method, fitted with `flags`."""
    linear = ["--method", "bag-mean-linear", "--leave-out", "id"]
    done(llpbench("fit", "rows.csv", "--bag-column", "district", "--out", "model", *linear, *flags))
    assert llpbench("predict", "model", "rows.csv", "--out", "new.csv").code == 0
    return pd.read_csv("new.csv").filter(like="probability").to_numpy()


def test_all_forms_of_bag_tables_are_equal(folder: Path, llpbench: LLPBench) -> None:
    table = pd.read_csv(folder / "bags.csv")
    size = table["no"] + table["yes"]
    expected = fitted_proba(llpbench, "--bags", "bags.csv", "--counts", "no,yes")
    long = table.assign(size=size).melt(["district", "size"], var_name="party", value_name="votes").query("votes > 0")
    long.to_csv("long.csv", index=False)
    share = table.assign(no=table["no"] / size, yes=table["yes"] / size, size=size)
    share.to_csv("share.csv", index=False)
    (share.assign(size=3 * size, no=3 * table["no"], yes=3 * table["yes"])).to_csv("thrice.csv", index=False)
    for flags in (
        ["--bags", "long.csv", "--counts", "votes", "--class-column", "party", "--size-column", "size"],
        ["--bags", "share.csv", "--proportions", "no,yes", "--size-column", "size"],
        ["--bags", "share.csv", "--proportions", "yes"],
        ["--bags", "thrice.csv", "--counts", "no,yes", "--sampled"],
        ["--bags", "thrice.csv", "--counts", "yes", "--size-column", "size", "--classes", "no,yes", "--sampled"],
    ):
        assert np.allclose(fitted_proba(llpbench, *flags), expected)


def test_keys_and_texts_are_read_unchanged(folder: Path, llpbench: LLPBench) -> None:
    """01 is not 1, NA is Namibia, 3.0 is 3; and a text that looks like a number is the one that fit saw."""
    names = {0: "NA", 1: "01", 2: "1", 3: "3.0"}
    rows = pd.read_csv(folder / "rows.csv")
    rows = rows.assign(zip=[f"0{number % 3}" if number % 5 else "none" for number in range(300)])
    rows.assign(district=rows["district"].map(names).fillna("x")).to_csv("rows.csv", index=False)
    table = pd.read_csv(folder / "bags.csv")
    table = table.assign(district=table["district"].map({**names, 3: "3"}).fillna("x"))
    table.groupby("district").sum().reset_index().to_csv("bags.csv", index=False)
    assert llpbench(*FIT, *QUICK).code == 0
    model = LLPClassifier.load("model")
    assert model.bags_.tolist() == ["01", "1", "3", "NA", "x"]
    pd.read_csv("rows.csv", dtype={"zip": str}).query("zip != 'none'").to_csv("some.csv", index=False)
    assert llpbench("predict", "model", "some.csv", "--out", "new.csv").code == 0
    assert llpbench("predict", "model", "rows.csv", "--out", "all.csv").code == 0
    kept = pd.read_csv("all.csv")[(rows["zip"] != "none").to_numpy()]
    assert np.allclose(pd.read_csv("new.csv")["probability_yes"], kept["probability_yes"], atol=1e-6)  # other batches


def test_dropped_columns_are_named(folder: Path, llpbench: LLPBench) -> None:
    rows, table = pd.read_csv(folder / "rows.csv"), pd.read_csv(folder / "bags.csv")
    lost = int((rows["district"] == 4).sum())
    table.loc[table["district"] == 4, "district"] = 77
    table.loc[0, "yes"] += 1
    table = table.astype({"yes": float})
    table.loc[1:2, "yes"] = np.nan
    table.to_csv("bags.csv", index=False)
    result = done(llpbench(*FIT, *QUICK, "--drop-unmatched", "--suppress-impossible"))
    assert f"dropped: {lost} rows without a known bag, 1 bag without rows" in result.out
    assert "suppressed: 2 bags" in result.out
    assert "suppressed: 1 bag with counts" in result.out


CHOOSE = ["choose", *FIT[1:-2], "--methods", "bag-mean-linear,bag-soft-label-linear", "--leave-out", "id"]


def test_choose_compares_on_held_out_bags(folder: Path, llpbench: LLPBench) -> None:
    result = done(llpbench(*CHOOSE, "--repeats", "1", "--folds", "4"))
    assert "Use bag-mean-linear" in result.out
    assert all(name in result.out for name in ("bag-mean-linear", "bag-soft-label-linear", "bag-share"))
    assert not [path for path in folder.iterdir() if path.is_dir() and path.name == "choice"]


@pytest.mark.usefixtures("folder")
def test_failed_method_is_reported_with_its_reason(llpbench: LLPBench, plugin: Path) -> None:
    command = [*CHOOSE, "--plugin", str(plugin), "--repeats", "1", "--folds", "2"]
    command[command.index("--methods") + 1] += ",broken"
    result = llpbench(*command)
    assert result.code == 1, result.err
    assert "Traceback" not in result.err
    assert "no luck (tiny_bench.py:" in " ".join(result.out.split())


@pytest.mark.parametrize("keys", [["district"], ["district", "half"]])
def test_files_match_numeric_bags_of_python(keys: list[str], folder: Path, llpbench: LLPBench) -> None:
    rows = pd.read_csv(folder / "rows.csv").assign(half=lambda frame: frame["id"] // 150)
    rows.to_csv(folder / "rows.csv", index=False)
    features, bags = rows[["age", "owns", "town", "job"]], rows[keys if len(keys) > 1 else keys[0]]
    votes = (rows["age"].fillna(50) > 50).groupby([rows[key] for key in keys]).sum()
    model = LLPClassifier("bag-mean-linear").fit(features, bags, counts=votes)
    model.save("of-python")
    for flags, wanted in (
        ([], model.predict_proba(features, bags)),
        (["--whole-bags"], model.disaggregate(features, bags)),
    ):
        asked = ["predict", "of-python", "rows.csv", "--bag-column", "+".join(keys), *flags, "--out", "new.csv"]
        done(llpbench(*asked))
        assert np.allclose(pd.read_csv(folder / "new.csv")[["probability_0", "probability_1"]], wanted, atol=1e-9)
    result = llpbench("predict", "of-python", "rows.csv", "--bag-column", "district+id+job", "--out", "new.csv")
    assert result.code == 2
    assert f"as in fit ({len(keys)}, as in" in result.err


@pytest.mark.parametrize("column", ["day", "week"])
@pytest.mark.usefixtures("folder")
def test_time_column_holds_out_later_bags(column: str, llpbench: LLPBench) -> None:
    rows, table = pd.read_csv("rows.csv"), pd.read_csv("bags.csv")
    rows.assign(day=(rows["district"] + 1).map("2024-01-{:02}".format)).to_csv("rows.csv", index=False)
    table.assign(week=11 - table["district"]).to_csv("bags.csv", index=False)
    result = done(llpbench(*CHOOSE, "--folds", "2", "--time-column", column))
    assert "later" in result.out
    assert ("'day'" in result.err) == (column != "day")  # a feature that names the bags, unless it is their time


def test_bags_may_call_their_key_otherwise(folder: Path, llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv").rename(columns={"district": "precinct"})
    table.to_csv("bags.csv", index=False)
    refused = llpbench(*FIT, *QUICK)
    assert "--bag-column district=NAME" in refused.err
    given = ["district=precinct" if part == "district" else part for part in FIT]
    assert llpbench(*given, *QUICK).code == 0
    assert len(LLPClassifier.load(folder / "model").bags_) == len(table)
    new = ["predict", "model", *FIT[1:4], *FIT[6:8], "--whole-bags", "--out", "new.csv"]
    assert "--bag-column district=NAME" in llpbench(*new, "--bag-column", "district").err
    assert llpbench(*new, "--bag-column", "district=precinct").code == 0
    rows = pd.read_csv("rows.csv")
    rows.assign(district=rows["district"].map("{:03d}".format)).to_csv("rows.csv", index=False)
    whole = ["predict", "model", "rows.csv", "--bag-column", "district", "--whole-bags", "--out", "new.csv"]
    assert "'001' is nearly '1'" in llpbench(*whole).err


@pytest.mark.usefixtures("folder")
def test_lines_of_several_years_name_the_column(llpbench: LLPBench) -> None:
    table, rows = pd.read_csv("bags.csv"), pd.read_csv("rows.csv")
    pd.concat([table.assign(year=2019), table.assign(year=2020)]).to_csv("bags.csv", index=False)
    assert "'year'" in llpbench(*FIT).err
    rows.assign(year=2019).to_csv("rows.csv", index=False)
    assert "--bag-column district+year" in llpbench(*FIT).err


@pytest.mark.usefixtures("folder")
def test_files_in_the_wrong_order_are_named(llpbench: LLPBench) -> None:
    swapped = {"rows.csv": "bags.csv", "bags.csv": "rows.csv"}
    result = llpbench(*(swapped.get(part, part) for part in FIT))
    assert "--bags" in result.err


@pytest.mark.usefixtures("folder")
def test_group_estimates_are_written_printed_and_drawn(llpbench: LLPBench) -> None:
    result = done(llpbench(*ASK, "--by", "zone,owns", "--plot", "groups.svg", "--class", "no"))
    assert "6 groups in 12 bags" in result.out
    found, bags, rows = (pd.read_csv(f"{name}.csv") for name in ("groups", "bags", "zones"))
    assert list(found.columns[:5]) == ["district", "zone", "owns", "class", "rows"]
    is_overall = found["district"] == "all"
    overall = found[is_overall]
    assert len(overall) == 12
    totals = overall.groupby("class")["count"].sum().to_dict()
    assert totals == pytest.approx(bags[["no", "yes"]].sum().to_dict(), abs=1e-3)  # files have six digits
    inside = found[~is_overall].groupby(["district", "class"])["count"].sum().unstack().rename(index=int)
    assert np.allclose(inside.sort_index(), bags[["no", "yes"]])
    features = rows[["age", "owns", "town", "job", "zone"]]
    expected = LLPClassifier.load("process").estimate(features, rows["district"].astype(str), ["zone", "owns"])
    numbers = expected.select_dtypes("number").drop(columns="class", errors="ignore")
    assert np.allclose(numbers, found[[*numbers]], rtol=1e-5)
    digits = pd.read_csv("groups.csv", dtype=str)["share"].str.replace(r"^0\.0*|e.*|\.", "", regex=True).str.len()
    assert digits.max() <= 6
    drawn = Path("groups.svg").read_text(encoding="utf-8")
    for row in overall.itertuples():
        interval = f"[{100 * row.share_lower:.1f}, {100 * row.share_upper:.1f}]"
        assert interval in result.out
        if row._4 == "no":
            assert f"{row.zone}, {row.owns}" in drawn
            assert f"{100 * row.share:.1f} {interval}" in drawn
    rows.assign(zone=rows.index % 20).to_csv("zones.csv", index=False)
    assert llpbench(*ASK, "--by", "zone").out.count("[") == 12
    assert llpbench(*ASK, "--by", "town", "--plot", "groups.svg").code == 0
    assert "nan" in Path("groups.svg").read_text(encoding="utf-8")  # rows without a town


@pytest.mark.usefixtures("folder")
def test_estimate_accepts_other_bags_and_methods(llpbench: LLPBench) -> None:
    rows, bags = pd.read_csv("zones.csv"), pd.read_csv("bags.csv")
    rows[rows["district"] < 6].to_csv("some.csv", index=False)
    bags[bags["district"] < 6].assign(yes=bags["no"], no=bags["yes"]).to_csv("others.csv", index=False)
    some = ["some.csv", "--bag-column", "district", "--by", "owns", "--out", "some-by.csv"]
    assert "--method bag-gp" in refused(llpbench("estimate", "linear", *some))
    done(llpbench("estimate", "process", *some, "--bags", "others.csv", "--counts", "no,yes"))
    found = pd.read_csv("some-by.csv")
    turned = found[(found["district"] == "all") & (found["class"] == "yes")]["count"].sum()
    assert turned == pytest.approx(bags.loc[bags["district"] < 6, "no"].sum())


@pytest.mark.usefixtures("folder")
def test_where_selects_printed_groups(llpbench: LLPBench) -> None:
    result = done(llpbench(*ASK, "--by", "zone,owns", "--where", "zone=z2,owns=True", "--where", "class=yes"))
    printed = [line for line in result.out.splitlines() if line.startswith(("z1", "z2", "z3"))]
    assert [line.split()[:3] for line in printed] == [["z2", "True", "yes"]]
    found = pd.read_csv("groups.csv").query("district == 'all' and zone == 'z2' and owns and `class` == 'yes'")
    assert f"{100 * found['share'].iloc[0]:.1f}" in printed[0]
    result = llpbench(*ASK, "--by", "zone", "--where", "district=3")
    assert len([line for line in result.out.splitlines() if line.startswith(("z1", "z2", "z3"))]) == 6
    assert "two classes" in refused(llpbench(*ASK, "--by", "zone", "--among", "yes"))
    assert "maybe" in refused(llpbench(*ASK, "--by", "zone", "--among", "yes,maybe"))
    for wrong in ("sex=F", "zone=z9"):
        assert wrong.partition("=")[0] in refused(llpbench(*ASK, "--by", "zone", "--where", wrong))


@pytest.mark.usefixtures("folder")
def test_unmatched_rows_are_dropped_on_request(llpbench: LLPBench) -> None:
    plain = llpbench(*ASK, "--by", "zone")
    assert plain.code == 0, plain.err
    expected = pd.read_csv("groups.csv")
    rows = pd.read_csv("zones.csv")
    more = pd.concat([rows, rows.head(9).assign(district=99), rows.head(3).assign(district=None)], ignore_index=True)
    more.to_csv("more.csv", index=False)
    asked = [each.replace("zones.csv", "more.csv") for each in ASK]
    assert llpbench(*asked, "--by", "zone").code == 2
    result = done(llpbench(*asked, "--by", "zone", "--drop-unmatched"))
    assert "12 of 312 rows" in result.err
    assert np.allclose(pd.read_csv("groups.csv").select_dtypes("number"), expected.select_dtypes("number"))
    out = ["--bag-column", "district", "--out", "p.csv", "--whole-bags", "--drop-unmatched"]
    assert llpbench("predict", "process", "more.csv", *out).code == 0
    assert len(pd.read_csv("p.csv")) == 300

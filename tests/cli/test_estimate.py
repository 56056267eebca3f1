"""`llpbench estimate`, from files to files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, refused
from districts import counted, people

from llpbench import LLPClassifier

FAST = {"most_pairs": 0, "draws": 0}
ASK = ["estimate", "model", "rows.csv", "--bag-column", "district", "--out", "groups.csv"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, bags, and a model of each of two methods."""
    folder = tmp_path_factory.mktemp("estimate")
    frame, bags, votes = people(300, 12)
    rows = frame.assign(district=[int(bag[1:]) for bag in bags], id=np.arange(300), zone=["z1", "z2", "z3"] * 100)
    table = counted(rows["district"], np.array(["no", "yes"])[votes]).rename_axis("district").reset_index()
    rows.to_csv(folder / "rows.csv", index=False)
    table.to_csv(folder / "bags.csv", index=False)
    counts = table.set_index(table["district"].astype(str))[["no", "yes"]]
    for name, method in (("model", LLPClassifier("bag-gp", params=FAST)), ("linear", LLPClassifier("bag-mean-linear"))):
        model = method.fit(rows[["age", "owns", "town", "job"]], rows["district"].astype(str), counts=counts)
        model.save(folder / name)
    return folder


@pytest.fixture
def folder(fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with copies of these files."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_group_estimates_are_written_printed_and_drawn(llpbench: LLPBench) -> None:
    result = llpbench(*ASK, "--by", "zone,owns", "--plot", "groups.svg", "--class", "no")
    assert result.code == 0, result.err
    assert "6 groups in 12 bags" in result.out
    found, bags, rows = (pd.read_csv(f"{name}.csv") for name in ("groups", "bags", "rows"))
    assert list(found.columns[:5]) == ["district", "zone", "owns", "class", "rows"]
    is_overall = found["district"] == "all"
    overall = found[is_overall]
    assert len(overall) == 12
    totals = overall.groupby("class")["count"].sum().to_dict()
    assert totals == pytest.approx(bags[["no", "yes"]].sum().to_dict(), abs=1e-3)  # files have six digits
    inside = found[~is_overall].groupby(["district", "class"])["count"].sum().unstack().rename(index=int)
    assert np.allclose(inside.sort_index(), bags[["no", "yes"]])
    features = rows[["age", "owns", "town", "job", "zone"]]
    expected = LLPClassifier.load("model").estimate(features, rows["district"].astype(str), ["zone", "owns"])
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
    rows.assign(zone=rows.index % 20).to_csv("rows.csv", index=False)
    assert llpbench(*ASK, "--by", "zone").out.count("[") == 12
    assert llpbench(*ASK, "--by", "town", "--plot", "groups.svg").code == 0
    assert "nan" in Path("groups.svg").read_text(encoding="utf-8")  # rows without a town


@pytest.mark.usefixtures("folder")
def test_estimate_accepts_other_bags_and_methods(llpbench: LLPBench) -> None:
    rows, bags = pd.read_csv("rows.csv"), pd.read_csv("bags.csv")
    rows[rows["district"] < 6].to_csv("some.csv", index=False)
    bags[bags["district"] < 6].assign(yes=bags["no"], no=bags["yes"]).to_csv("others.csv", index=False)
    some = ["some.csv", "--bag-column", "district", "--by", "owns", "--out", "some-by.csv"]
    result = llpbench("estimate", "linear", *some)
    assert (result.code, "--method bag-gp" in result.err) == (2, True)
    result = llpbench("estimate", "model", *some, "--bags", "others.csv", "--counts", "no,yes")
    assert result.code == 0, result.err
    found = pd.read_csv("some-by.csv")
    turned = found[(found["district"] == "all") & (found["class"] == "yes")]["count"].sum()
    assert turned == pytest.approx(bags.loc[bags["district"] < 6, "no"].sum())


@pytest.mark.usefixtures("folder")
def test_where_selects_printed_groups(llpbench: LLPBench) -> None:
    result = llpbench(*ASK, "--by", "zone,owns", "--where", "zone=z2,owns=True", "--where", "class=yes")
    assert result.code == 0, result.err
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
    rows = pd.read_csv("rows.csv")
    more = pd.concat([rows, rows.head(9).assign(district=99), rows.head(3).assign(district=None)], ignore_index=True)
    more.to_csv("more.csv", index=False)
    asked = [each.replace("rows.csv", "more.csv") for each in ASK]
    assert llpbench(*asked, "--by", "zone").code == 2
    result = llpbench(*asked, "--by", "zone", "--drop-unmatched")
    assert result.code == 0, result.err
    assert "12 of 312 rows" in result.err
    assert np.allclose(pd.read_csv("groups.csv").select_dtypes("number"), expected.select_dtypes("number"))
    out = ["--bag-column", "district", "--out", "p.csv", "--whole-bags", "--drop-unmatched"]
    assert llpbench("predict", "model", "more.csv", *out).code == 0
    assert len(pd.read_csv("p.csv")) == 300

"""`llpbench fit`, `predict`, `choose`, `estimate` and `effects`, from files to files; and the figure of effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done, refused, replaced
from districts import counted, rewritten

from llpbench import LLPClassifier
from llpbench.core.effects import FeatureEffect
from llpbench.data.tasks import Scaler
from llpbench.report.plots.own_figures import effect_panels

pytestmark = pytest.mark.usefixtures("folder")
FIT = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--out", "model"]
LINEAR, QUICK = ["--method", "bag-mean-linear"], ["--method", "count-gbdt", "--set", "trees=100", "--leave-out", "id"]
WHOLE = ["--bag-column", "district", "--whole-bags"]
CHOOSE = ["choose", *FIT[1:-2], "--methods", "bag-mean-linear,bag-soft-label-linear", "--leave-out", "id"]
BOTH = ["--bags", "a.csv", "--bag-column", "district", "--bags", "b.csv", "--bag-column", "home+half"]
FIT_BOTH = [*FIT[:2], *BOTH, *FIT[6:], *LINEAR]
ASK = ["estimate", "process", "zones.csv", "--bag-column", "district", "--out", "groups.csv"]


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
    table = rewritten("bags.csv", lambda frame: frame.assign(share=frame["yes"] / (frame["yes"] + frame["no"])))
    for other in ([], ["--bags", "bags.csv", "--proportions", "share"]):
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
    zips = [f"0{number % 3}" if number % 5 else "none" for number in range(300)]
    rows = rewritten("rows.csv", lambda rows: rows.assign(zip=zips, district=rows["district"].map(names).fillna("x")))
    table = pd.read_csv("bags.csv")
    table.groupby(table.pop("district").map({**names, 3: "3"}).fillna("x")).sum().to_csv("bags.csv")
    done(llpbench(*FIT, *QUICK))
    assert LLPClassifier.load("model").bags_.tolist() == ["01", "1", "3", "NA", "x"]
    some = rows["zip"] != "none"
    rows[some].to_csv("some.csv", index=False)
    found, expected = (predicted(llpbench, rows=name)["probability_yes"] for name in ("some.csv", "rows.csv"))
    assert np.allclose(found, expected[some], atol=1e-6)  # other batches


def test_dropped_columns_are_named(llpbench: LLPBench) -> None:
    wrong = [1, np.nan, np.nan, *[0] * 9]
    rewritten("bags.csv", lambda f: f.assign(yes=f["yes"] + wrong, district=f["district"].replace(4, 77)))
    lost = (pd.read_csv("rows.csv")["district"] == 4).sum()
    out = done(llpbench(*FIT, *QUICK, "--drop-unmatched", "--suppress-impossible")).out
    assert f"dropped: {lost} rows without a known bag, 1 bag without rows" in out
    assert ("suppressed: 2 bags" in out, "suppressed: 1 bag with counts" in out) == (True, True)


def test_choose_compares_on_held_out_bags_and_names_a_failed_method(llpbench: LLPBench, plugin: Path) -> None:
    more = ["--plugin", str(plugin), "--methods", "bag-mean-linear,bag-soft-label-linear,broken"]
    result = llpbench(*replaced(CHOOSE, more), "--repeats", "1", "--folds", "4")
    assert (result.code, "Traceback" in result.err) == (1, False), result.err
    assert "Use bag-mean-linear" in result.out
    assert all(name in result.out for name in ("bag-mean-linear", "bag-soft-label-linear", "bag-share"))
    assert "no luck (tiny_bench.py:" in " ".join(result.out.split())


@pytest.mark.parametrize("keys", [["district"], ["district", "half"]], ids="+".join)
def test_files_match_numeric_bags_of_python(keys: list[str], llpbench: LLPBench) -> None:
    rows = rewritten("rows.csv", lambda frame: frame.assign(half=frame["id"] // 150))
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
    rewritten("rows.csv", lambda rows: rows.assign(day=(rows["district"] + 1).map("2024-01-{:02}".format)))
    rewritten("bags.csv", lambda table: table.assign(week=11 - table["district"]))
    result = done(llpbench(*CHOOSE, "--folds", "2", "--time-column", column))
    assert "later" in result.out
    assert ("'day'" in result.err) == (column != "day")  # a feature that names the bags, unless it is their time


def test_bags_may_call_their_key_otherwise(llpbench: LLPBench) -> None:
    rewritten("bags.csv", lambda table: table.rename(columns={"district": "precinct"}))
    predict = ["predict", "model", *FIT[1:-1], "new.csv", "--whole-bags"]
    for command in ([*FIT, *QUICK], predict):
        assert "--bag-column district=NAME" in refused(llpbench(*command))
        done(llpbench(*replaced(command, ["--bag-column", "district=precinct"])))
    assert len(LLPClassifier.load("model").bags_) == 12
    rewritten("rows.csv", lambda rows: rows.assign(district=rows["district"].map("{:03d}".format)))
    assert "'001' is nearly '1'" in llpbench("predict", "model", "rows.csv", *WHOLE, "--out", "new.csv").err


def test_lines_of_several_years_name_the_column(llpbench: LLPBench) -> None:
    rewritten("bags.csv", lambda table: pd.concat([table.assign(year=2019), table.assign(year=2020)]))
    assert "'year'" in llpbench(*FIT).err
    rewritten("rows.csv", lambda rows: rows.assign(year=2019))
    assert "--bag-column district+year" in llpbench(*FIT).err
    swapped = {"rows.csv": "bags.csv", "bags.csv": "rows.csv"}
    assert "--bags" in llpbench(*(swapped.get(part, part) for part in FIT)).err


def test_two_groupings_in_files_are_used(llpbench: LLPBench) -> None:
    """The second one has bags of two columns. A row without a bag in one of them is dropped once."""
    homes = {"home": lambda rows: np.where(rows["owns"], "own", "rent"), "half": np.arange(300) % 2}
    rows = rewritten("rows.csv", lambda rows: rows.drop(columns="id").assign(**homes))
    votes = np.where(rows["age"] > 50, "yes", "no")
    counted(rows["district"], votes).to_csv("a.csv")
    counted([rows["home"], rows["half"]], votes).to_csv("b.csv")
    assert "300 rows in 16 bags" in done(llpbench(*FIT_BOTH)).out
    model = LLPClassifier.load("model")
    assert ("own", "0") in {*model.bags_}
    assert [*model.feature_names_in_] == ["age", "owns", "town", "job"]
    assert len(predicted(llpbench)) == 300
    for name, keys in ("a", ["district"]), ("b", ["home", "half"]):  # labels of one part, and of two
        found = predicted(llpbench, "--bag-column", "+".join(keys), "--whole-bags")
        expected = pd.read_csv(f"{name}.csv").set_index(keys)["yes"].sort_index()
        assert np.allclose(found.groupby(keys)["probability_yes"].sum(), expected)
    for more in (["--out-of-core"], ["--method", "dllp"]):
        refused(llpbench(*replaced(FIT_BOTH, more)))
    rewritten("b.csv", lambda table: table[1:])
    dropped = ((rows["home"] == "own") & (rows["half"] == 0)).sum()
    for name in ("strength", "bag-mean-linear.strength"):
        out = done(llpbench(*FIT_BOTH, "--drop-unmatched", "--set", f"{name}=2")).out
        assert (f"dropped: {dropped} rows" in out, "300 rows in 15 bags" in out) == (True, True)
        assert float((LLPClassifier.load("model").params or {})["strength"]) == 2
    rewritten("rows.csv", lambda frame: frame.assign(home=frame["home"].mask(frame.index < 60)))
    assert "60 of 300 rows" in refused(llpbench(*FIT_BOTH))


def test_effects_of_a_saved_model(llpbench: LLPBench) -> None:
    asked = ["effects", "process", "--out", "effects.svg"]
    result = done(llpbench(*asked, "--class", "yes"))
    shown = [line for line in result.out.splitlines() if line.startswith(("age", "owns", "town", "job"))]
    assert (len(shown), shown[0][:3]) == (4, "age")
    assert ">age<" in Path("effects.svg").read_text(encoding="utf-8")
    assert "--class" in refused(llpbench(*asked, "--class", "maybe"))
    assert ".svg" in refused(llpbench(*replaced(asked, ["--out", "effects"])))


def some_effect(importance: float, name: str, **facts: Any) -> FeatureEffect:
    usual = {"edges": np.zeros(1), "codes": None, "categories": None, "weights": np.array([0.5, 0.5]), "scale": "share"}
    given: dict[str, Any] = usual | facts
    values = importance * np.linspace(-1, 1, len(given["weights"]))
    return FeatureEffect(feature=0, name=name, values=values, std=0.1 + 0 * values, undetermined=0.25, **given)


def test_strongest_effects_of_all_kinds_of_features_are_drawn() -> None:
    figure = effect_panels([some_effect(0.01 * i, f"x{i}") for i in range(1, 13)], "title")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") or ax.get_title() for ax in shown] == [f"x{i}" for i in range(12, 3, -1)]
    assert figure.axes[0].texts[-1].get_text() == "0.25"
    thirds = np.full(3, 1 / 3)
    codes, categories = ((1,), (2,), (3, 4)), ("u", "v", "2 others")
    category = some_effect(0.2, "c", edges=None, codes=codes, categories=categories, weights=thirds)
    gaps = some_effect(0.1, "gaps", weights=thirds)
    constant = some_effect(0.0, "constant", edges=np.zeros(0), weights=np.ones(1))
    figure = effect_panels([category, gaps, constant], "title")
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["u", "v", "2 others"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["missing", "0.25"]
    assert [gaps.bin_text(i) for i in range(3)] == ["< 0", ">= 0", "missing"]
    assert category.bin_text(2) == "2 others"
    for edges, texts in (
        ([7318.4, 67834.2], ["< 7318", "7318 to 67,830", ">= 67,830"]),
        ([-0.00012, 0.5], ["< -0.00012", "-0.00012 to 0.5", ">= 0.5"]),
        ([100001.0, 100002.5], ["< 100,001", "100,001 to 100,002", ">= 100,002"]),
        ([-2.5e9, 1e-9], ["< -2.5e+09", "-2.5e+09 to 1e-09", ">= 1e-09"]),
    ):
        money = some_effect(1, "money", edges=np.array(edges), weights=thirds)
        assert [money.bin_text(i) for i in range(3)] == texts
    scaler = Scaler(np.array([[-2e6], [4e6]]), np.zeros((2, 0), np.int64), [])  # mean 1e6, standard deviation 3e6
    effect = some_effect(1, "x", edges=np.array([-1 / 3, 0.2], np.float32), weights=thirds)
    (wide,) = scaler.named([effect], ["x"], [])
    assert [wide.bin_text(i) for i in range(3)] == ["< 0", "0 to 1,600,000", ">= 1,600,000"]


def test_group_estimates_are_written_printed_and_drawn(llpbench: LLPBench) -> None:
    result = done(llpbench(*ASK, "--by", "zone,owns", "--plot", "groups.svg", "--class", "no"))
    assert "6 groups in 12 bags" in result.out
    found, rows = pd.read_csv("groups.csv"), pd.read_csv("zones.csv")
    assert list(found.columns[:5]) == ["district", "zone", "owns", "class", "rows"]
    features = rows[["age", "owns", "town", "job", "zone"]]
    expected = LLPClassifier.load("process").estimate(features, rows["district"].astype(str), ["zone", "owns"])
    numbers = expected.select_dtypes("number").drop(columns="class", errors="ignore")
    assert np.allclose(numbers, found[[*numbers]], rtol=1e-5)
    digits = pd.read_csv("groups.csv", dtype=str)["share"].str.replace(r"^0\.0*|e.*|\.", "", regex=True).str.len()
    assert digits.max() <= 6
    drawn = Path("groups.svg").read_text(encoding="utf-8")
    overall = found[found["district"] == "all"]
    assert len(overall) == 12
    for row in overall.itertuples():
        interval = f"[{100 * row.share_lower:.1f}, {100 * row.share_upper:.1f}]"
        assert interval in result.out
        if row._4 == "no":
            assert f"{row.zone}, {row.owns}" in drawn
            assert f"{100 * row.share:.1f} {interval}" in drawn
    rows.assign(zone=rows.index % 20).to_csv("zones.csv", index=False)
    assert llpbench(*ASK, "--by", "zone").out.count("[") == 12
    done(llpbench(*ASK, "--by", "town", "--plot", "groups.svg"))
    assert "nan" in Path("groups.svg").read_text(encoding="utf-8")  # rows without a town


def test_estimate_accepts_other_bags_and_methods(llpbench: LLPBench) -> None:
    rows, bags = pd.read_csv("zones.csv"), pd.read_csv("bags.csv")[:6]  # of the districts 0 to 5
    rows[rows["district"] < 6].to_csv("some.csv", index=False)
    bags.rename(columns={"no": "yes", "yes": "no"}).to_csv("others.csv", index=False)
    some = ["some.csv", *ASK[3:], "--by", "owns"]
    assert "--method bag-gp" in refused(llpbench("estimate", "linear", *some))
    done(llpbench("estimate", "process", *some, "--bags", "others.csv", "--counts", "no,yes"))
    turned = pd.read_csv("groups.csv").query("district == 'all' and `class` == 'yes'")["count"].sum()
    assert turned == pytest.approx(bags["no"].sum())


def test_where_selects_printed_groups(llpbench: LLPBench) -> None:
    def printed(*flags: str) -> list[list[str]]:
        lines = done(llpbench(*ASK, "--by", "zone,owns", *flags)).out.splitlines()
        return [line.split() for line in lines if line.startswith(("z1", "z2", "z3"))]

    (line,) = printed("--where", "zone=z2,owns=True", "--where", "class=yes")
    assert line[:3] == ["z2", "True", "yes"]
    found = pd.read_csv("groups.csv").query("district == 'all' and zone == 'z2' and owns and `class` == 'yes'")
    assert f"{100 * found['share'].iloc[0]:.1f}" in line
    assert len(printed("--where", "district=3")) == 12


def test_unmatched_rows_are_dropped_on_request(llpbench: LLPBench) -> None:
    done(llpbench(*ASK, "--by", "zone"))
    expected, rows = pd.read_csv("groups.csv").select_dtypes("number"), pd.read_csv("zones.csv")
    pd.concat([rows, rows[:9].assign(district=99), rows[:3].assign(district=None)]).to_csv("zones.csv", index=False)
    refused(llpbench(*ASK, "--by", "zone"))
    assert "12 of 312 rows" in done(llpbench(*ASK, "--by", "zone", "--drop-unmatched")).err
    assert np.allclose(pd.read_csv("groups.csv").select_dtypes("number"), expected)
    done(llpbench("predict", *ASK[1:], "--whole-bags", "--drop-unmatched"))
    assert len(pd.read_csv("groups.csv")) == 300


@pytest.mark.parametrize("keys", [["district"], ["district", "half"]], ids="+".join)
def test_rows_of_bags_not_in_a_long_table_are_dropped(keys: list[str], llpbench: LLPBench) -> None:
    rows = rewritten("rows.csv", lambda rows: rows.assign(half=rows["id"] // 150))
    votes = np.where(rows["age"] > 50, "yes", "no")[known := rows["district"] < 9]
    rows[known].assign(party=votes).groupby([*keys, "party"]).size().rename("votes").to_csv("long.csv")
    flags = ["--bag-column", "+".join(keys), "--bags", "long.csv", "--counts", "votes", "--class-column", "party"]
    found = predicted(llpbench, *flags, "--whole-bags", "--drop-unmatched", model="fitted")
    assert found["id"].tolist() == rows["id"][known].tolist()
    assert np.isclose(found["probability_yes"].sum(), (votes == "yes").sum())


def test_rows_with_half_a_key_have_no_bag(llpbench: LLPBench) -> None:
    rows = rewritten("rows.csv", lambda rows: rows.assign(half=np.where(rows["id"] < 150, "k", "l")))
    votes = np.where(rows["age"] > 50, "yes", "no")
    counted([rows["district"], rows["half"]], votes).to_csv("bags.csv")
    rows = rows.assign(day=rows["district"])
    lost = rows[:2].assign(district=None, day=[1, 2])
    pd.concat([rows, lost]).to_csv("rows.csv", index=False)
    flags = ["--bag-column", "district+half", "--time-column", "day", "--folds", "2"]
    assert "later" in done(llpbench(*replaced(CHOOSE, flags), "--drop-unmatched")).out


def test_empty_lines_of_bags_are_skipped(llpbench: LLPBench) -> None:
    for lines in (",,\n", ",,\n,,\n"):
        with open("bags.csv", "a") as file:
            file.write(lines)
        done(llpbench(*FIT, *QUICK))
        assert len(LLPClassifier.load("model").bags_) == 12

"""`llpbench estimate` and `effects`, from files to files, and the figure of effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done, refused, replaced

from llpbench import LLPClassifier
from llpbench.core.effects import FeatureEffect
from llpbench.data.tasks import Scaler
from llpbench.report.plots.own_figures import effect_panels

pytestmark = pytest.mark.usefixtures("folder")
ASK = ["estimate", "process", "zones.csv", "--bag-column", "district", "--out", "groups.csv"]


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


def test_strongest_effects_are_drawn() -> None:
    figure = effect_panels([some_effect(0.01 * i, f"x{i}") for i in range(1, 13)], "title")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") or ax.get_title() for ax in shown] == [f"x{i}" for i in range(12, 3, -1)]
    assert figure.axes[0].texts[-1].get_text() == "0.25"


def test_effects_cover_all_kinds_of_features() -> None:
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
    assert llpbench(*ASK, "--by", "town", "--plot", "groups.svg").code == 0
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

"""Commands on your data: effects of features, and two tables of bags of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, refused
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.effects import FeatureEffect
from llpbench.data.tasks import Scaler
from llpbench.report.plots.own_figures import effect_panels


def test_effects_of_a_saved_model(llpbench: LLPBench, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(size=600), "noise": rng.normal(size=600), "town": np.arange(600) // 20})
    rows["age"] += 2 * (rows["town"] % 3 == 0)
    yes = pd.Series(rng.random(600) < 1 / (1 + np.exp(-2 * rows["age"]))).groupby(rows["town"]).sum()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame({"town": yes.index, "no": 20 - yes, "yes": yes}).to_csv(tmp_path / "bags.csv", index=False)
    model, out = tmp_path / "model", tmp_path / "effects.svg"
    given = [str(tmp_path / "rows.csv"), "--bags", str(tmp_path / "bags.csv"), "--bag-column", "town"]
    llpbench.succeed("fit", *given, "--counts", "no,yes", "--method", "bag-gp", "--out", str(model))
    result = llpbench.succeed("effects", str(model), "--class", "yes", "--out", str(out))
    first = next(line for line in result.out.splitlines() if line.startswith(("age", "noise")))
    assert first.startswith("age")
    assert ">age<" in out.read_text(encoding="utf-8")
    assert "--class" in refused(llpbench("effects", str(model), "--class", "maybe", "--out", str(out)))
    assert ".svg" in refused(llpbench("effects", str(model), "--out", str(tmp_path / "effects")))


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


FIT = ["fit", "rows.csv", "--counts", "no,yes", "--method", "bag-mean-linear", "--out", "model"]
BOTH = ["--bags", "a.csv", "--bag-column", "district", "--bags", "b.csv", "--bag-column", "home+half"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A working directory with rows and two tables of bags, the second one by two columns."""
    frame, bags, votes = people(400, 16)
    rows = frame.assign(district=bags, home=np.where(frame["owns"], "own", "rent"), half=np.arange(400) % 2)
    names = np.array(["no", "yes"])[votes]
    counted(rows["district"], names).to_csv(tmp_path / "a.csv")
    pd.crosstab([rows["home"], rows["half"]], names).to_csv(tmp_path / "b.csv")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return rows


def test_rows_without_bag_in_one_grouping_are_counted_once(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    rows.assign(home=rows["home"].mask(rows.index < 60)).to_csv("rows.csv", index=False)
    assert "60 of 400 rows" in refused(llpbench(*FIT, *BOTH))
    rows.to_csv("rows.csv", index=False)
    pd.read_csv("b.csv").iloc[1:].to_csv("b.csv", index=False)
    dropped = ((rows["home"] == "own") & (rows["half"] == 0)).sum()
    for name in ("strength", "bag-mean-linear.strength"):
        result = llpbench.succeed(*FIT, *BOTH, "--drop-unmatched", "--set", f"{name}=2")
        assert f"dropped: {dropped} rows" in result.out
        assert "400 rows in 19 bags" in result.out
        assert float((LLPClassifier.load("model").params or {})["strength"]) == 2


def test_two_groupings_in_files_are_used(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    result = llpbench.succeed(*FIT, *BOTH)
    assert "400 rows in 20 bags" in result.out
    model = LLPClassifier.load("model")
    assert ("own", "0") in {*model.bags_}
    assert {*model.key_features_}.isdisjoint(model.feature_names_in_)
    assert not {"district", "home", "half"} & {*model.feature_names_in_}
    llpbench.succeed("predict", "model", "rows.csv", "--out", "new.csv")
    assert len(pd.read_csv("new.csv")) == len(rows)
    for grouping in (BOTH[2:4], BOTH[6:]):  # labels of one part, and of two
        result = llpbench.succeed("predict", "model", "rows.csv", *grouping, "--whole-bags", "--out", "whole.csv")
        found = pd.read_csv("whole.csv")
        keys = grouping[1].split("+")
        expected = pd.read_csv("a.csv" if len(keys) == 1 else "b.csv").set_index(keys)["yes"]
        assert np.allclose(found.groupby(keys)["probability_yes"].sum(), expected.sort_index())


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("more", [[*BOTH, "--out-of-core"], [*BOTH, "--method", "dllp"]])
def test_conflicting_options_are_refused(llpbench: LLPBench, more: list[str]) -> None:
    refused(llpbench(*FIT, *more))


RANGES = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--method", "bag-mean-linear"]


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.Series:
    """The true counts; a working directory with rows, and counts below 8 as a range."""
    frame, bags, votes = people(600, 40)
    frame.assign(district=bags).to_csv(tmp_path / "rows.csv", index=False)
    yes = counted(bags, votes)[1].rename_axis("district").rename("yes")
    yes.astype(object).mask(yes < 8, "<8").to_csv(tmp_path / "bags.csv")
    monkeypatch.chdir(tmp_path)
    return yes


def test_counts_file_with_ranges_is_read(votes: pd.Series, llpbench: LLPBench) -> None:
    result = llpbench.succeed(*RANGES, "--counts", "yes", "--out", "model")
    assert "'<8'" in result.err
    known = LLPClassifier.load("model").bag_counts_[:, 1]
    assert (known[votes >= 8] == votes[votes >= 8]).all()
    assert (known[votes < 8] < 7).all()
    assert "'<8'" not in llpbench(*RANGES, "--counts", "yes", "--suppressed", "<8", "--out", "model").err
    assert np.isnan(LLPClassifier.load("model").bag_counts_[votes < 8]).all()
    noisy = llpbench(*RANGES, "--counts", "yes", "--noise", "2", "--out", "model")
    assert (noisy.code, noisy.err.splitlines()[-1].startswith("llpbench: ")) == (2, True)

"""`llpbench effects`: a table and a plot of what a fitted process says of features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench import LLPBench, refused

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
    assert llpbench("fit", *given, "--counts", "no,yes", "--method", "bag-gp", "--out", str(model)).code == 0
    result = llpbench("effects", str(model), "--class", "yes", "--out", str(out))
    assert result.code == 0
    first = next(line for line in result.out.splitlines() if line.startswith(("age", "noise")))
    assert first.startswith("age")
    assert ">age<" in out.read_text(encoding="utf-8")
    assert "--class" in refused(llpbench("effects", str(model), "--class", "maybe", "--out", str(out)))
    assert ".svg" in refused(llpbench("effects", str(model), "--out", str(tmp_path / "effects")))


def some_effect(importance: float, name: str, **facts: Any) -> FeatureEffect:
    given: dict[str, Any] = {
        "edges": np.zeros(1),
        "codes": None,
        "categories": None,
        "weights": np.array([0.5, 0.5]),
    } | facts
    values = importance * np.linspace(-1, 1, len(given["weights"]))
    return FeatureEffect(
        feature=0, name=name, scale="share", values=values, std=0.1 + 0 * values, undetermined=0.25, **given
    )


def test_strongest_effects_are_drawn() -> None:
    figure = effect_panels([some_effect(0.01 * i, f"x{i}") for i in range(1, 13)], "title")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") or ax.get_title() for ax in shown] == [f"x{i}" for i in range(12, 3, -1)]
    assert figure.axes[0].texts[-1].get_text() == "0.25"


def test_effects_cover_all_kinds_of_features() -> None:
    thirds = np.full(3, 1 / 3)
    category = some_effect(
        0.2, "c", edges=None, codes=((1,), (2,), (3, 4)), categories=("u", "v", "2 others"), weights=thirds
    )
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

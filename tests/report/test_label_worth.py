"""Labels that bags are worth, from small curves computed by hand."""

from __future__ import annotations

import pytest
from pandas import DataFrame, MultiIndex, Series

from llpbench.report import leaderboard
from llpbench.report.leaderboard import SIZES, label_worth

KEYS = MultiIndex.from_product([["forest"], ["one", "two"], [0, 1]], names=["learner", "dataset", "seed"])
RISING = [60.0, 62.0, 64.0, 66.0, 68.0, 70.0, 72.0, 74.0, 76.0, 78.0]
"""two points for each doubling of labelled rows"""


@pytest.fixture(autouse=True)
def curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard, "_label_curves", lambda: DataFrame([RISING] * 4, KEYS, [*SIZES]))


def scores(**auc: list[float]) -> DataFrame:
    return DataFrame(auc, KEYS.droplevel("learner"))


def test_label_worth_inverts_the_curve_and_divides_by_the_geometric_mean_of_bags() -> None:
    found = label_worth(scores(a=[66.0] * 4, b=[69.0] * 4, c=[90.0] * 4), Series({"one": 4.0, "two": 16.0}))
    assert found["labels"].tolist() == pytest.approx([64, 128 * 2**0.5, 4096])
    assert found["per_bag"].tolist() == pytest.approx([8, 16 * 2**0.5, 512])


def test_interval_has_no_width_if_datasets_and_seeds_agree_and_contains_the_value_if_they_differ() -> None:
    bags = Series({"one": 8.0, "two": 8.0})
    found = label_worth(scores(equal=[66.0] * 4, spread=[62.0, 64.0, 68.0, 70.0]), bags)
    assert found["low"]["equal"] == pytest.approx(found["high"]["equal"]) == pytest.approx(8)
    assert found["low"]["spread"] == pytest.approx(2, rel=0.5)
    assert found["per_bag"]["spread"] == pytest.approx(8)
    assert found["high"]["spread"] > 8


def test_datasets_without_curves_have_no_label_worth() -> None:
    other = scores(a=[66.0] * 4).rename(index={"two": "three"})
    assert label_worth(other, Series({"one": 8.0, "three": 8.0})).empty

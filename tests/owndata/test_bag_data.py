"""`BagData`: data of bags are read once and used by fits, comparisons and estimates."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import BagData, LLPBenchError, LLPClassifier, choose

FRAME, BAGS, VOTES = people(400, 20)
COUNTS = counted(BAGS, np.array(["no", "yes"])[VOTES])


def ridge(X: pd.DataFrame, bags: Any, **facts: Any) -> LLPClassifier:  # noqa: N803
    return LLPClassifier("bag-mean-linear").fit(X, bags, **facts)


@pytest.mark.parametrize(
    "facts",
    [
        {"counts": COUNTS},
        {"counts": COUNTS + 2.5, "noise": 4.2},
        {"counts": 2 * COUNTS, "as_shares": True},
        {"counts": COUNTS.drop("d07"), "unmatched": "drop"},
        {"proportions": COUNTS.div(COUNTS.sum(axis=1), axis=0), "keep_key": True},
        {"counts": 3 * COUNTS, "sample_weight": np.full(400, 3.0)},
    ],
)
def test_bag_data_gives_the_model_of_its_arguments(facts: dict[str, Any]) -> None:
    frame, bags = FRAME.assign(district=BAGS), pd.Series(BAGS, name="district")
    data = BagData.read(frame, bags, **facts)
    model, same = ridge(frame, data), ridge(frame, bags, **facts)
    assert np.array_equal(model.predict_proba(frame), same.predict_proba(frame))
    assert model.key_features_ == same.key_features_ == ([] if "keep_key" in facts else ["district"])
    assert np.array_equal(model.bag_counts_, same.bag_counts_, equal_nan=True)


def test_all_methods_take_bag_data() -> None:
    data = BagData.read(FRAME, BAGS, counts=COUNTS)
    model = ridge(FRAME, data)
    given: dict[str, Any] = {"counts": COUNTS}
    assert np.array_equal(model.disaggregate(FRAME, data), model.disaggregate(FRAME, BAGS, **given))
    assert model.assign(FRAME, data).tolist() == model.assign(FRAME, BAGS, **given).tolist()
    assert model.score_bags(FRAME, data) == model.score_bags(FRAME, BAGS, **given)
    process = LLPClassifier("bag-gp", params={"draws": 0}).fit(FRAME, data)
    assert process.estimate(FRAME, data, "owns").equals(process.estimate(FRAME, BAGS, "owns", **given))
    methods = ["bag-mean-linear", "bag-soft-label-linear"]
    compared: dict[str, Any] = {"methods": methods, "folds": 2, "repeats": 1, "progress": False}
    one, other = choose(FRAME, data, **compared), choose(FRAME, BAGS, **given, **compared)
    assert one.board.drop(columns="seconds").equals(other.board.drop(columns="seconds"))


def test_bag_data_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        BagData.read(FRAME, BAGS, counts=COUNTS).noise = 1.0  # type: ignore[misc]


def test_ranges_are_refused_outside_of_fit() -> None:
    model = ridge(FRAME, BAGS, counts=COUNTS)
    ranges = COUNTS.astype(object).assign(yes=["<9", *COUNTS["yes"][1:]])
    with pytest.raises(LLPBenchError, match="ranges"):
        model.score_bags(FRAME, BAGS, counts=ranges)

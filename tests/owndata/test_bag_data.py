"""`BagData`: data of bags are read once and used by all methods; several groupings of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import BagData, LLPBenchError, LLPClassifier, choose

FRAME, BAGS, VOTES = people(600, 20)
DISTRICT = pd.Series(BAGS, name="district")
GROUP = pd.Series(np.where(FRAME["owns"], "owner", "tenant"), name="group") + (np.arange(600) % 3).astype(str)
COUNTS = counted(BAGS, np.array(["no", "yes"])[VOTES])
TABLES = [counted(DISTRICT, VOTES), counted(GROUP, VOTES)]


def fit(bags: Any, method: str = "bag-mean-linear", frame: Any = FRAME, **given: Any) -> LLPClassifier:
    return LLPClassifier(method).fit(frame, bags, **given)


@pytest.mark.parametrize("form", [lambda table: table[[1, 0]], lambda table: table[1].to_dict()])
def test_several_groupings_equal_copies_of_rows(form: Any) -> None:
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    plain = fit(np.concatenate([DISTRICT, GROUP]), frame=twice, counts=pd.concat(TABLES))
    found = fit([DISTRICT, GROUP], counts=[form(table) for table in TABLES])
    assert np.allclose(found.predict_proba(FRAME), plain.predict_proba(FRAME))
    assert found.groupings_ == 2
    assert {*found.bags_} == {*DISTRICT, *GROUP}


def test_weights_apply_to_each_grouping() -> None:
    weights = pd.Series(np.arange(600) % 2 + 1, name="people")
    tables = [counted(each.repeat(weights), np.repeat(VOTES, weights)) for each in (DISTRICT, GROUP)]
    frame = FRAME.assign(people=weights)
    found = fit([DISTRICT, GROUP], frame=frame, counts=tables, sample_weight=weights)
    assert found.bag_sizes_.sum() == 2 * weights.sum()
    assert found.key_features_ == ["people"]


def test_bag_columns_are_no_features_unless_kept() -> None:
    frame = FRAME.assign(district=DISTRICT, group=GROUP)
    found = fit([DISTRICT, GROUP], frame=frame, counts=TABLES)
    assert found.key_features_ == ["district", "group"]
    assert np.allclose(found.predict_proba(frame), fit([DISTRICT, GROUP], counts=TABLES).predict_proba(FRAME))
    assert fit([DISTRICT, GROUP], frame=frame, counts=TABLES, keep_key=True).n_features_in_ == FRAME.shape[1] + 2


@pytest.mark.parametrize(
    ("bags", "given", "told"),
    [
        ([DISTRICT, GROUP], {"method": "dllp"}, "direct method"),
        ([DISTRICT, GROUP], {"counts": TABLES[0]}, "list"),
        ([DISTRICT], {"counts": TABLES[:1]}, "at least 2"),
        ([DISTRICT, DISTRICT], {"counts": [TABLES[0]] * 2}, "same name"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1].set_axis(["a", "b"], axis=1)]}, "same classes"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1][1]]}, "same classes"),
        ([DISTRICT, GROUP], {"noise": 1.0}, "noise="),
        ([DISTRICT, GROUP[:500]], {}, "500"),
    ],
)
def test_conflicting_options_are_refused(bags: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        fit(bags, **{"counts": TABLES} | given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "facts",
    [
        {"counts": COUNTS + 2.5, "noise": 4.2},
        {"counts": 2 * COUNTS, "as_shares": True},
        {"counts": COUNTS.drop("d07"), "unmatched": "drop"},
        {"proportions": COUNTS.div(COUNTS.sum(axis=1), axis=0), "keep_key": True},
        {"counts": 3 * COUNTS, "sample_weight": np.full(600, 3.0)},
    ],
)
def test_bag_data_gives_the_model_of_its_arguments(facts: dict[str, Any]) -> None:
    frame, bags = FRAME.assign(district=BAGS), pd.Series(BAGS, name="district")
    data = BagData.read(frame, bags, **facts)
    model, same = fit(data, frame=frame), fit(bags, frame=frame, **facts)
    assert np.array_equal(model.predict_proba(frame), same.predict_proba(frame))
    assert model.key_features_ == same.key_features_ == ([] if "keep_key" in facts else ["district"])
    assert np.array_equal(model.bag_counts_, same.bag_counts_, equal_nan=True)


def test_all_methods_take_bag_data() -> None:
    data = BagData.read(FRAME, BAGS, counts=COUNTS)
    model = fit(data)
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


def test_ranges_and_groupings_are_refused_outside_of_fit() -> None:
    ranges = COUNTS.astype(object).assign(yes=["<9", *COUNTS["yes"][1:]])
    with pytest.raises(LLPBenchError, match="ranges"):
        fit(BAGS, counts=COUNTS).score_bags(FRAME, BAGS, counts=ranges)
    with pytest.raises(LLPBenchError, match="grouping"):
        choose(FRAME, [DISTRICT, GROUP], counts=TABLES)

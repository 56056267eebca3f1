"""Rows to predict whose bags `fit` has not seen, or that have none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from districts import counted, people

from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.unknown_bags import UnknownBags

FRAME, BAGS, VOTES = people(600, 12)


@pytest.fixture(scope="module")
def model() -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(FRAME, BAGS, counts=counted(BAGS, VOTES))


def first_rows(number: int, label: Any) -> Any:
    found = BAGS.astype(object)
    found[:number] = label
    return found


@pytest.mark.parametrize(
    ("bags", "told"),
    [
        (first_rows(600, "far"), r"^all rows .* such as 'far' \(fit had 'd00' and 'd01'\):"),
        (first_rows(300, "far"), "^300 of 600 rows .* such as 'far'"),
        (first_rows(450, None), "^450 of 600 rows .* or in no bag:"),
    ],
)
def test_a_line_warns_where_half_of_the_rows_have_no_known_bag(bags: Any, told: str, model: LLPClassifier) -> None:
    with pytest.warns(UnknownBags, match=told):
        found = model.predict_proba(FRAME, bags)
    strange = ~np.isin(bags.astype(str), model.bags_.astype(str))
    assert np.array_equal(found[strange], model.predict_proba(FRAME)[strange])


def test_a_few_unknown_bags_are_no_surprise(model: LLPClassifier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict_proba(FRAME, first_rows(100, "far"))
    assert np.array_equal(found[:100], model.predict_proba(FRAME)[:100])

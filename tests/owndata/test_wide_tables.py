"""Tables of a shape that asks for hours or gigabytes: told, or refused, before a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from llpbench import LLPBenchError, LLPClassifier
from llpbench.owndata.sizes import LargeFit


def test_a_class_a_row_is_refused() -> None:
    bags = np.repeat([0, 1, 2], 10)
    counts = pd.DataFrame(0, index=[0, 1, 2], columns=[f"row {number}" for number in range(30)])
    for number, bag in enumerate(bags):
        counts.iloc[bag, number] = 1
    frame = pd.DataFrame({"a": np.arange(30.0) % 7})
    with pytest.raises(LLPBenchError, match="30 classes for 30 rows"):
        LLPClassifier("bag-share").fit(frame, bags, counts=counts)
    LLPClassifier("bag-share").fit(pd.concat([frame] * 5), np.tile(bags, 5), counts=5 * counts)


@pytest.mark.parametrize(("columns", "categories", "warned"), [(30, 0, False), (1_100, 0, True), (1, 20_001, True)])
def test_a_table_that_takes_gigabytes_is_warned_of(columns: int, categories: int, warned: bool) -> None:
    rows = max(200, categories)
    numbers = np.arange(rows) % 7
    frame = pd.DataFrame({f"c{place}": numbers + float(place) for place in range(columns)})
    if categories:
        frame["town"] = [f"t{number}" for number in range(rows)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LLPClassifier("bag-share").fit(frame, np.arange(rows) % 2, proportions=[0.2, 0.6])
    assert any(each.category is LargeFit for each in caught) == warned

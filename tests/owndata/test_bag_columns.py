"""Columns that name the bags, or repeat their counts, are named before they are taken as features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llpbench import LLPClassifier
from llpbench.owndata.bag_columns import BagColumn

ROWS, BAGS = 600, 20
RNG = np.random.default_rng(0)
OF_ROW = RNG.permutation(ROWS) % BAGS
VOTES = (RNG.random(ROWS) < 0.2 + 0.03 * OF_ROW).astype(int)
YES = np.bincount(OF_ROW, VOTES, BAGS)
SIZE = np.bincount(OF_ROW, minlength=BAGS)
INCOME = RNG.normal(size=BAGS).round(3)


def fit(column: Any, **given: Any) -> LLPClassifier:
    rows = pd.DataFrame({"age": np.random.default_rng(1).normal(size=ROWS), "found": column})
    counts = pd.DataFrame({"no": SIZE - YES, "yes": YES})
    return LLPClassifier("bag-share").fit(rows, OF_ROW, **{"counts": counts} | given)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ([f"district {bag}" for bag in OF_ROW], "different values"),
        ([f"day {max(bag, 1)}" for bag in OF_ROW], "different values"),
        (100 + OF_ROW, "different values"),
        (20240101 + OF_ROW + 90 * (OF_ROW > 9), "different values"),
        (YES[OF_ROW], "counts or shares"),
        ((SIZE - YES)[OF_ROW], "counts or shares"),
        ((YES / SIZE)[OF_ROW].round(2), "counts or shares"),
        ((100 * YES / SIZE)[OF_ROW].round(1), "counts or shares"),
    ],
)
def test_a_column_of_the_bags_is_named(column: Any, what: str) -> None:
    with pytest.warns(BagColumn, match=f"{what}.*'found'.*--leave-out found"):
        fit(column)


@pytest.mark.parametrize(
    "column",
    [
        INCOME[OF_ROW],
        SIZE[OF_ROW],
        1000 + OF_ROW**2,
        [f"county {bag // 2}" for bag in OF_ROW],
        [f"district {(row == 0) + bag}" for row, bag in enumerate(OF_ROW)],
    ],
)
def test_what_is_known_of_a_bag_is_a_feature(column: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagColumn)
        fit(column)


def test_a_key_that_somebody_keeps_is_no_surprise() -> None:
    named = pd.Series([f"district {bag}" for bag in OF_ROW], name="found")
    counts = pd.Series(YES, index=[f"district {bag}" for bag in range(BAGS)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagColumn)
        rows = pd.DataFrame({"age": np.arange(ROWS) % 7, "found": named})
        assert LLPClassifier("bag-share").fit(rows, named, counts=counts, keep_key=True).n_features_in_ == 2

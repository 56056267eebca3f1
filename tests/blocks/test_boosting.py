"""Rows for histogram gradient boosting, worked out by hand."""

from __future__ import annotations

import numpy as np
from bagged import rows_of
from numpy.testing import assert_array_equal

from llpbench.blocks.boosting import MOST_CATEGORIES, BoostingRows

NAN = float("nan")
# the second number is never there; the category's code 2 is more frequent than 1, 3 is unseen, 0 is missing
TRAIN = rows_of([[1, NAN], [NAN, NAN], [3, NAN], [4, NAN], [5, NAN]], [[2], [1], [2], [4], [0]])


def test_missing_numbers_are_nan_and_categories_are_numbered_by_frequency() -> None:
    expected = [[1, 0, 0], [NAN, 0, 1], [3, 0, 0], [4, 0, 2], [5, 0, NAN]]
    assert_array_equal(BoostingRows(TRAIN)(TRAIN), np.array(expected))


def test_rows_of_other_data_are_seen_with_the_eyes_of_training() -> None:
    # a number where training had none, categories that training did not have, within its codes and beyond
    other = rows_of([[NAN, 9], [2, 9], [3, NAN]], [[3], [7], [1]])
    assert_array_equal(BoostingRows(TRAIN)(other), np.array([[NAN, 0, NAN], [2, 0, NAN], [3, 0, 1]]))


def test_categorical_columns_come_last_and_are_named() -> None:
    rows = rows_of([[1, 2], [3, 4]], [[1, 1, 2], [2, 1, 1]])
    assert BoostingRows(rows).categorical.tolist() == [False, False, True, True, True]
    assert BoostingRows(rows_of([[1.0], [2.0]])).categorical.tolist() == [False]


def test_only_the_most_frequent_categories_are_kept() -> None:
    # each of 300 categories once, the last 200 of them twice: these come first, then the others as they stand
    codes = np.concatenate([np.arange(1, 301), np.arange(101, 301)])
    rows = rows_of(np.zeros((len(codes), 1)).tolist(), codes.reshape(-1, 1).tolist())
    found = BoostingRows(rows)(rows)[:300, 1]
    assert_array_equal(found[100:], np.arange(200))
    assert_array_equal(found[:54], np.arange(200, MOST_CATEGORIES))
    assert np.isnan(found[54:100]).all()

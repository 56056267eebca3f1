"""Direct methods on counts that are noisy, fractional or suppressed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.registry import METHODS
from llpbench.data.toy import toy_task

NAMES = ["bag-mean-linear", "bag-soft-label-linear", "bag-soft-label-gbdt"]
TASK = toy_task(0, unequal=True)


def predictions(name: str, train: BaggedRows, **params: Any) -> FloatArray:
    declared = METHODS.get(name)
    method = declared(declared.Params(**params))
    return np.asarray(method.fit(train, TASK.schema, np.random.default_rng(0))(TASK.test.rows))


def suppressed(train: BaggedRows, bags: list[int]) -> BaggedRows:
    counts = train.counts.copy()
    counts[bags] = np.nan
    return replace(train, counts=counts)


@pytest.mark.parametrize("name", [*NAMES, "bag-gp", "count-gbdt", "em-gbdt"])
def test_suppressed_bags_are_as_if_they_were_not_there(name: str) -> None:
    """Against the same data without them, put together here."""
    without = [2, 5, 11]
    bags = [bag for bag in range(len(TASK.train.index)) if bag not in without]
    rows = np.concatenate([TASK.train.index[bag][TASK.train.index[bag] >= 0] for bag in bags])
    rows.sort()
    position = {int(row): place for place, row in enumerate(rows)} | {-1: -1}
    index = np.array([[position[int(row)] for row in TASK.train.index[bag]] for bag in bags])
    features = type(TASK.train.rows)(*(part[rows] for part in TASK.train.rows))
    expected = predictions(name, BaggedRows(features, index, TASK.train.counts[bags]))
    found = predictions(name, suppressed(TASK.train, without))
    assert np.allclose(found, expected, atol=1e-9)
    assert not np.allclose(predictions(name, TASK.train), expected, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_noisy_counts_count_by_their_proportions(name: str) -> None:
    rng = np.random.default_rng(0)
    noisy = replace(TASK.train, counts=TASK.train.counts + rng.normal(0, 6, size=TASK.train.counts.shape), noise=6.0)
    assert (noisy.counts < 0).any()
    proba = predictions(name, noisy)
    assert np.isfinite(proba).all()
    exact = replace(noisy, counts=noisy.proportions * noisy.sizes[:, None])
    assert np.allclose(proba, predictions(name, exact), atol=1e-6)
    assert not np.allclose(proba, predictions(name, TASK.train), atol=1e-3)


@pytest.mark.parametrize("name", ["bag-mean-linear", "bag-soft-label-linear"])
def test_logistic_regression_too(name: str) -> None:
    proba = predictions(name, suppressed(TASK.train, [0, 1]), model="logistic")
    assert np.isfinite(proba).all()
    assert np.allclose(proba.sum(axis=1), 1)

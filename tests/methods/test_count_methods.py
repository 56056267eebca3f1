"""bag-gp, count-gbdt, em-gbdt and their union: what they do with unusual bags, and what must not matter to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bagged import in_bags, rows_of, schema_of
from numpy.testing import assert_allclose
from scipy.special import expit

from llpbench.blocks.count_trees import boost_counts
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, FloatArray, Rows
from llpbench.core.registry import METHODS

FAST: dict[str, dict[str, Any]] = {
    "bag-gp": {"draws": 0},
    "count-gbdt": {"trees": 100},
    "em-gbdt": {"rounds": 2, "trees": 50},
    "bag-gp-gbdt": {"trees": 100, "rounds": 2},
}
NAMES = pytest.mark.parametrize("name", FAST)


def predict(name: str, train: BaggedRows, other: Rows, **params: Any) -> FloatArray:
    declared = METHODS.get(name)
    method = declared(declared.Params(**FAST[name] | params))
    return np.asarray(method.fit(train, schema_of(train, 4), np.random.default_rng(0))(other))


def some_rows(rows: int, seed: int = 0) -> tuple[Rows, FloatArray]:
    """Three numbers and a category, and the logit of the second class."""
    rng = np.random.default_rng(seed)
    numbers, codes = rng.normal(size=(rows, 3)), rng.integers(1, 4, (rows, 1))
    logit = 2 * numbers[:, 0] - numbers[:, 1] ** 2 + 1.5 * (codes[:, 0] == 2)
    return rows_of(numbers.tolist(), codes.tolist()), logit


def bagged(rows: Rows, labels: Any, bags: list[list[int]], classes: int = 2) -> BaggedRows:
    counts = [np.bincount(labels[bag], minlength=classes).tolist() for bag in bags]
    return in_bags(rows, bags, counts)


def unequal(rows: int, rng: np.random.Generator) -> list[list[int]]:
    """Bags of 1 to 40 rows that hold all of them, in a random order."""
    order, ends = rng.permutation(rows), np.cumsum(rng.integers(1, 41, rows))
    return [part.tolist() for part in np.split(order, ends[ends < rows]) if len(part)]


@NAMES
@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns_from_unequal_bags(name: str, classes: int) -> None:
    rows, logit = some_rows(2000)
    labels = (np.random.default_rng(1).random(2000) < expit(logit)).astype(int)
    if classes == 3:
        labels[rows.numeric[:, 2] > 1] = 2
    train = bagged(rows, labels, unequal(2000, np.random.default_rng(2)), classes)
    other, other_logit = some_rows(1000, seed=3)
    proba = predict(name, train, other)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert np.corrcoef(proba[:, 1], expit(other_logit))[0, 1] > 0.7
    if classes == 3:
        assert proba[other.numeric[:, 2] > 1, 2].mean() > 2 * proba[other.numeric[:, 2] < 1, 2].mean()
    assert_allclose(proba.mean(axis=0), train.prior, atol=0.04)


@NAMES
def test_neither_the_order_of_bags_nor_that_of_rows_matters(name: str) -> None:
    rows, logit = some_rows(600)
    labels = (logit > 0).astype(int)
    bags = unequal(600, np.random.default_rng(2))
    other, _ = some_rows(50, seed=3)
    expected = predict(name, bagged(rows, labels, bags), other)
    shuffled = [np.random.default_rng(i).permutation(bag).tolist() for i, bag in enumerate(bags)][::-1]
    # a sum in another order may tip a split between equals: almost all rows must agree
    found = predict(name, bagged(rows, labels, shuffled), other)
    assert np.quantile(np.abs(found - expected), 0.9) < 0.02


@NAMES
def test_one_bag_and_bags_of_one(name: str) -> None:
    rows, logit = some_rows(300)
    labels = (logit > 0).astype(int)
    other, other_logit = some_rows(300, seed=3)
    alone = predict(name, bagged(rows, labels, [list(range(300))]), other)
    assert np.isfinite(alone).all()
    assert_allclose(alone[:, 1].mean(), labels.mean(), atol=0.1)
    labelled = predict(name, bagged(rows, labels, [[i] for i in range(300)]), other)
    assert np.corrcoef(labelled[:, 1], other_logit > 0)[0, 1] > 0.6


@NAMES
def test_pure_bags_of_one_class_alone(name: str) -> None:
    rows, _ = some_rows(100)
    proba = predict(name, bagged(rows, np.ones(100, dtype=int), [list(range(50)), list(range(50, 100))]), rows)
    assert np.isfinite(proba).all()
    assert proba[:, 1].min() > 0.9


def test_the_first_tree_is_that_of_soft_labels() -> None:
    rows, logit = some_rows(400)
    train = bagged(rows, (logit > 0).astype(int), [list(range(i, i + 40)) for i in range(0, 400, 40)])
    settings = TreeSettings(rounds=1, leaves=4, learning_rate=0.1, penalty=1.0, features=1.0)
    found = boost_counts(TreeRows(rows), BagCounts(train), train.prior, settings, np.random.default_rng(0))(rows)[:, 1]
    pi = train.prior[1]
    moved = found - np.log(pi / (1 - pi))
    soft = train.proportions[train.bag_of_row, 1]
    leaves = np.unique(moved.round(6))
    assert len(leaves) == 4
    for value in leaves:
        inside = np.isclose(moved, value, atol=1e-5)
        expected = 0.1 * (soft[inside] - pi).sum() / (inside.sum() * pi * (1 - pi) + 1.0)
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-5)

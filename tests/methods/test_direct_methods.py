"""Direct methods against independent references: normal equations in plain numpy, and trees found by trying all."""

from __future__ import annotations

import numpy as np
import pytest
from bagged import in_bags, predict, rows_of
from sklearn.ensemble import HistGradientBoostingRegressor
from small import toy_task

from llpbench.blocks.design import BoostingRows
from llpbench.core.bags import FloatArray, Rows

NAN = float("nan")

NUMERIC = [[0.3, 5], [1.2, 5], [NAN, 5], [-0.7, 5], [0.1, 5], [2.0, 5], [-1.5, 5], [0.9, 5], [NAN, 5], [0.4, 5]]
CATEGORIES = [[1], [2], [1], [1], [0], [2], [2], [1], [1], [2]]
BAGS = [[8, 0, 3], [5], [2, 1], [4, 6, 7, 9]]
COUNTS = [[1, 1, 1], [0, 0, 1], [1, 1, 0], [2, 1, 1]]
TRAIN = in_bags(rows_of(NUMERIC, CATEGORIES), BAGS, COUNTS)
"""three classes, bags of one to four rows, missing numbers and categories, a constant column, code 3 unseen"""
OTHER = rows_of([[0.5, 4], [NAN, 5], [-3.0, 6], [1.0, 5]], [[3], [2], [1], [0]])


def standardised(train: Rows, other: Rows, codes: int) -> tuple[FloatArray, FloatArray]:
    """Dense columns of training and other rows, divided by their deviation in training, constant ones left out."""

    def columns(rows: Rows) -> FloatArray:
        return np.column_stack([rows.numeric, rows.missing, rows.categorical[:, :1] == np.arange(codes)]).astype(float)

    deviation = columns(train).std(axis=0)
    varies = deviation > 0
    return columns(train)[:, varies] / deviation[varies], columns(other)[:, varies] / deviation[varies]


def ridge(x: FloatArray, targets: FloatArray, weights: FloatArray, strength: float, other: FloatArray) -> FloatArray:
    """Scores of other rows by the weighted normal equations, the intercept not penalised."""
    with_one = np.column_stack([np.ones(len(x)), x])
    penalty = strength * np.diag([0.0, *np.ones(x.shape[1])])
    solution = np.linalg.solve(with_one.T * weights @ with_one + penalty, with_one.T * weights @ targets)
    return np.asarray(np.column_stack([np.ones(len(other)), other]) @ solution)


def squeezed(scores: FloatArray) -> FloatArray:
    """Scores as probabilities, one by one: exponentially towards 0 and 1 from 0.05 away, then divided by their sum."""

    def one(score: float) -> float:
        if score < 0.05:
            return float(0.05 * np.exp(score / 0.05 - 1))
        return float(1 - 0.05 * np.exp((1 - score) / 0.05 - 1)) if score > 0.95 else score

    each = np.array([[one(score) for score in row] for row in scores])
    return np.asarray(each / each.sum(axis=1, keepdims=True))


class TestLinear:
    def test_bag_means_solve_normal_equations(self) -> None:
        rows, other = standardised(TRAIN.rows, OTHER, codes=4)
        means = np.array([rows[bag].mean(axis=0) for bag in BAGS])
        proportions = np.array([[1 / 3, 1 / 3, 1 / 3], [0, 0, 1], [1 / 2, 1 / 2, 0], [1 / 2, 1 / 4, 1 / 4]])
        weights = np.array([3, 1, 2, 4]) / 2.5
        expected = squeezed(ridge(means, proportions, weights, 0.5, other))
        assert predict("bag-mean-linear", TRAIN, OTHER, 4, strength=0.5) == pytest.approx(expected, abs=1e-5)

    def test_soft_labels_solve_normal_equations(self) -> None:
        rows, other = standardised(TRAIN.rows, OTHER, codes=4)
        proportions = np.array(COUNTS) / np.array([[3], [1], [2], [4]])
        targets = np.array([proportions[next(b for b, bag in enumerate(BAGS) if row in bag)] for row in range(10)])
        expected = squeezed(ridge(rows, targets, np.ones(10), 2.0, other))
        assert predict("bag-soft-label-linear", TRAIN, OTHER, 4, strength=2.0) == pytest.approx(expected, abs=1e-5)


class TestBoosting:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_soft_labels_use_one_regression_for_two_classes(self, classes: int) -> None:
        train = toy_task(0, classes=classes, unequal=True).train
        rows_of = BoostingRows(train.rows)
        features, targets = rows_of(train.rows), train.proportions[train.bag_of_row]
        settings = {"max_iter": 5, "max_leaf_nodes": 4, "learning_rate": 0.3, "early_stopping": False}
        regression = HistGradientBoostingRegressor(**settings, categorical_features=rows_of.categorical)
        scores = np.column_stack([regression.fit(features, target).predict(features) for target in targets.T])
        if classes == 2:
            scores[:, 0] = 1 - scores[:, 1]
        found = predict("bag-soft-label-gbdt", train, train.rows, 9, trees=5, leaves=4, learning_rate=0.3)
        assert found == pytest.approx(squeezed(scores), abs=1e-6)

"""Rows as learners take them: design matrices, normal scores and rows for boosting, against tables by hand."""

from __future__ import annotations

import numpy as np
import pytest
from bagged import rows_of
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm

from llpbench.blocks.design import _MOST_CATEGORIES, BoostingRows, _ScoredRows, as_proba
from llpbench.blocks.linear import linear_fit
from llpbench.core.bags import FloatArray

NAN = float("nan")


class TestScoresAsProbabilities:
    def test_scores_beyond_edges_approach_bounds_exponentially(self) -> None:
        inside = np.array([[0.05, 0.95], [0.5, 0.5], [0.7, 0.3], [0.2, 0.8]])
        assert as_proba(inside) == pytest.approx(inside)
        scores = np.array([[0.0, 1.0], [-0.05, 1.05], [2.0, -1.0]])
        low, lower, lowest = 0.05 * np.exp([-1.0, -2.0, -21.0])
        expected = [[low, 1 - low], [lower, 1 - lower], [1 - lowest, lowest]]
        assert as_proba(scores) == pytest.approx(np.array(expected), rel=1e-9)
        raised = 0.05 * np.exp(-3)  # of -0.1
        several = np.array([[raised, 0.6, 0.9]]) / (raised + 0.6 + 0.9)
        assert as_proba(np.array([[-0.1, 0.6, 0.9]])) == pytest.approx(several)

    def test_class_order_is_kept_without_ties(self) -> None:
        positive = np.linspace(-1.0, 2.0, 301)
        proba = as_proba(np.column_stack([1 - positive, positive]))[:, 1]
        assert (np.diff(proba) > 0).all()
        assert 0 < proba.min() < proba.max() < 1


FEATURES = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [1.5, 2.0]])
TARGETS = np.array([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4], [0.2, 0.4, 0.4], [0.4, 0.5, 0.1]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0])


def softmax(scores: FloatArray) -> FloatArray:
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def least_cross_entropy(targets: FloatArray, strength: float) -> FloatArray:
    """Predictions at the least sum_i w_i H(p_i, softmax(b + x_i A)) + strength / 2 |A|^2, found by plain descent."""
    columns, classes = FEATURES.shape[1], targets.shape[1]

    def proba(flat: FloatArray) -> FloatArray:
        return softmax(flat[:classes] + FEATURES @ flat[classes:].reshape(columns, classes))

    def objective(flat: FloatArray) -> float:
        fit = -(WEIGHTS[:, None] * targets * np.log(proba(flat))).sum()
        return float(fit + strength / 2 * (flat[classes:] ** 2).sum())

    found = minimize(objective, np.zeros((columns + 1) * classes), method="BFGS", options={"gtol": 1e-7})
    return proba(found.x)


class TestLinearFit:
    def fit(self, model: str, targets: FloatArray = TARGETS, strength: float = 0.7) -> FloatArray:
        x = sparse.csr_array(FEATURES)
        return linear_fit(model, x, targets, WEIGHTS, strength).proba(x)

    def test_logistic_minimises_soft_cross_entropy(self) -> None:
        expected = least_cross_entropy(TARGETS, 0.7)
        assert self.fit("logistic") == pytest.approx(expected, abs=2e-4)

    def test_binary_logistic_has_one_coefficient_set(self) -> None:
        targets = np.column_stack([TARGETS[:, 0], 1 - TARGETS[:, 0]])
        # two sets a and -a cost 2 |a|^2, the one set 2 a that does the same costs 4 |a|^2: twice as much
        expected = least_cross_entropy(targets, 2 * 0.7)
        assert self.fit("logistic", targets) == pytest.approx(expected, abs=2e-4)


def test_scores_of_other_rows_match_definition() -> None:
    rng = np.random.default_rng(0)
    train, other = rng.integers(0, 9, 40).astype(float), rng.uniform(-1, 10, 30).round(1)

    def score(x: float) -> float:
        u = ((train < x).sum() + (train <= x).sum()) / 80
        return float(norm.ppf(min(max(u, 1 / 80), 1 - 1 / 80)))

    reference = np.array([score(x) for x in train])
    expected = (np.array([score(x) for x in other]) - reference.mean()) / reference.std()
    found = _ScoredRows(rows_of(train.reshape(-1, 1).tolist()))(rows_of(other.reshape(-1, 1).tolist()))
    assert found[:, 0] == pytest.approx(expected, abs=1e-9)


# the second number is never there; the category's code 2 is more frequent than 1, 3 is unseen, 0 is missing
TRAIN = rows_of([[1, NAN], [NAN, NAN], [3, NAN], [4, NAN], [5, NAN]], [[2], [1], [2], [4], [0]])


def test_categories_are_numbered_by_frequency() -> None:
    expected = [[1, 0, 0], [NAN, 0, 1], [3, 0, 0], [4, 0, 2], [5, 0, NAN]]
    assert_array_equal(BoostingRows(TRAIN)(TRAIN), np.array(expected))


def test_other_rows_use_training_codes() -> None:
    # a number where training had none, categories that training did not have, within its codes and beyond
    other = rows_of([[NAN, 9], [2, 9], [3, NAN]], [[3], [7], [1]])
    assert_array_equal(BoostingRows(TRAIN)(other), np.array([[NAN, 0, NAN], [2, 0, NAN], [3, 0, 1]]))


def test_only_most_frequent_categories_are_kept() -> None:
    # each of 300 categories once, the last 200 of them twice: these come first, then the others as they stand
    codes = np.concatenate([np.arange(1, 301), np.arange(101, 301)])
    rows = rows_of(np.zeros((len(codes), 1)).tolist(), codes.reshape(-1, 1).tolist())
    found = BoostingRows(rows)(rows)[:300, 1]
    assert_array_equal(found[100:], np.arange(200))
    assert_array_equal(found[:54], np.arange(200, _MOST_CATEGORIES))
    assert np.isnan(found[54:100]).all()

"""Direct methods against independent references: normal equations in plain numpy, and trees found by trying all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from bagged import in_bags, predict, rows_of

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


STUMP_NUMBERS = np.repeat([0.0, 1.0, 2.0, 3.0, NAN], [30, 25, 30, 40, 25])
STUMP_BAGS = np.split(np.random.default_rng(3).permutation(150), [20, 50, 90, 95])
"""unequal bags of rows of one number with four values, missing in 25 of 150 rows"""
LEAST_LEAF = 20
"""rows: scikit-learn's default"""


def splits() -> Iterator[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The rows on the left side of every possible split of the stump's number: missing ones on either side."""
    missing = np.isnan(STUMP_NUMBERS)
    for threshold in (0.5, 1.5, 2.5, np.inf):
        below = threshold > STUMP_NUMBERS
        yield from (below, below | missing) if threshold < np.inf else (below,)


def stump(gradients: FloatArray, hessians: FloatArray, penalty: float = 0.0) -> FloatArray:
    """Step [rows] of the best tree of two leaves: in a leaf, sum of gradients over sum of hessians and penalty."""
    best, step = -np.inf, np.zeros(len(gradients))
    for left in splits():
        sides = [left, ~left]
        if min(side.sum() for side in sides) < LEAST_LEAF:
            continue
        gain = sum(gradients[side].sum() ** 2 / (hessians[side].sum() + penalty) for side in sides)
        if gain > best:
            best = gain
            step = np.where(left, *(gradients[side].sum() / (hessians[side].sum() + penalty) for side in sides))
    return step


def squared_error_boosting(targets: FloatArray, trees: int, rate: float) -> FloatArray:
    """[rows] the mean, then stumps of what is left."""
    scores = np.full(len(targets), targets.mean())
    for _ in range(trees):
        scores = scores + rate * stump(targets - scores, np.ones(len(targets)))
    return scores


class TestBoosting:
    ROWS = rows_of(STUMP_NUMBERS.reshape(-1, 1).tolist())

    def counts(self, classes: int) -> FloatArray:
        """Proportions that go with the numbers in the bags, in whole rows."""
        likely = np.nan_to_num(STUMP_NUMBERS, nan=1.0).astype(np.int64) % classes
        labels = np.where(np.random.default_rng(5).random(150) < 0.7, likely, 0)
        return np.array([np.bincount(labels[bag], minlength=classes) for bag in STUMP_BAGS], dtype=float)

    def soft(self, counts: FloatArray) -> FloatArray:
        """[rows, classes] proportions of each row's bag."""
        targets = np.zeros((150, counts.shape[1]))
        for bag, count in zip(STUMP_BAGS, counts, strict=True):
            targets[bag] = count / len(bag)
        return targets

    @pytest.mark.parametrize("trees", [1, 3])
    @pytest.mark.parametrize("rate", [1.0, 0.3])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_soft_labels_use_one_regression_for_two_classes(self, classes: int, trees: int, rate: float) -> None:
        counts = self.counts(classes)
        train = in_bags(self.ROWS, [bag.tolist() for bag in STUMP_BAGS], counts.tolist())
        found = predict("bag-soft-label-gbdt", train, self.ROWS, trees=trees, leaves=2, learning_rate=rate)
        scores = np.column_stack([squared_error_boosting(target, trees, rate) for target in self.soft(counts).T])
        if classes == 2:
            scores[:, 0] = 1 - scores[:, 1]
        assert len(np.unique(scores.round(9))) > 1
        assert found == pytest.approx(squeezed(scores), abs=1e-5)

    def test_fully_grown_trees_predict_mean_of_equal_rows(self) -> None:
        # categories: every tree of enough leaves ends with one leaf for each; the missing (code 0) are one of them
        codes = np.repeat([0, 1, 2, 3], [25, 25, 30, 30])
        rng = np.random.default_rng(1)
        bags, share = np.split(rng.permutation(110), [10, 40, 65]), rng.random(4)
        counts = np.array([[len(bag) * (1 - p), len(bag) * p] for bag, p in zip(bags, share, strict=True)])
        rows = rows_of(np.zeros((110, 1)).tolist(), codes.reshape(-1, 1).tolist())
        train = in_bags(rows, [bag.tolist() for bag in bags], counts.tolist())
        # code 4 was unseen in training: it counts as missing
        new = rows_of([[0.0]] * 5, [[0], [1], [2], [3], [4]])
        found = predict("bag-soft-label-gbdt", train, new, 5, trees=1, leaves=4, learning_rate=1.0)
        soft = train.proportions[train.bag_of_row, 1]
        means = [soft[codes == code].mean() for code in (0, 1, 2, 3, 0)]
        assert found[:, 1] == pytest.approx(np.array(means), abs=1e-5)

    @pytest.mark.parametrize("trees", [1, 4])
    def test_supervised_binary_trees_are_newton_steps(self, trees: int) -> None:
        labels = (np.random.default_rng(7).random(150) < np.nan_to_num(STUMP_NUMBERS, nan=1.5) / 4 + 0.1).astype(float)
        train = in_bags(self.ROWS, [[row] for row in range(150)], np.column_stack([1 - labels, labels]).tolist())
        found = predict("supervised-gbdt", train, self.ROWS, trees=trees, leaves=2, learning_rate=0.5)
        odds = np.full(150, np.log(labels.mean() / (1 - labels.mean())))
        for _ in range(trees):
            proba = 1 / (1 + np.exp(-odds))
            odds = odds + 0.5 * stump(labels - proba, proba * (1 - proba))
        positive = 1 / (1 + np.exp(-odds))
        assert found == pytest.approx(np.column_stack([1 - positive, positive]), abs=1e-5)

    def test_supervised_softmax_trees_are_newton_steps(self) -> None:
        labels = (np.nan_to_num(STUMP_NUMBERS, nan=1.0) + np.random.default_rng(8).integers(0, 2, 150)).astype(int) % 3
        one_hot = np.eye(3)[labels]
        train = in_bags(self.ROWS, [[row] for row in range(150)], one_hot.tolist())
        found = predict("supervised-gbdt", train, self.ROWS, trees=2, leaves=2, learning_rate=0.3)
        scores = np.tile(np.log(one_hot.mean(axis=0)), (150, 1))
        for _ in range(2):
            proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            steps = [stump(one_hot[:, c] - proba[:, c], proba[:, c] * (1 - proba[:, c]), penalty=1.0) for c in range(3)]
            scores = scores + 0.3 * np.column_stack(steps)
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert found == pytest.approx(expected, abs=1e-5)

    def test_supervised_trees_are_stable_for_rare_or_absent_class(self) -> None:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(4000, 5))
        score = numbers[:, 0] + numbers[:, 1] * numbers[:, 2]
        labels = (score > np.quantile(score, 0.6)).astype(int) + (score > np.quantile(score, 0.9))
        labels[np.argsort(score)[-6:]] = 3
        labels[rng.choice(4000, 3)] = 4
        rows = rows_of(numbers.tolist())
        train = in_bags(rows, [[row] for row in range(4000)], np.eye(6)[labels].tolist())
        found = predict("supervised-gbdt", train, rows)
        assert (found.argmax(axis=1) == labels).mean() > 0.99
        assert not found[:, 5].any(), "a class without a training row"

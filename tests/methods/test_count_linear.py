"""count-linear against known answers, an enumeration of labels, and finite differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from bagged import in_bags, rows_of, schema_of
from scipy import sparse
from scipy.optimize import check_grad

from llpbench.blocks.bag_losses import BAG_LOSSES, BagLoss, count_probability, fit_bags
from llpbench.blocks.linear import FEATURES, LinearColumns
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.registry import METHODS

TWO_BAGS = in_bags(rows_of([[1], [1], [-1], [1], [-1], [-1]]), [[0, 1, 2], [3, 4, 5]], [[1, 2], [2, 1]])


def never_whole(train: BaggedRows) -> BaggedRows:
    """The same bags with counts that are not quite whole, so that their likelihood is normal."""
    return replace(train, counts=train.counts + 1e-10)


@pytest.mark.parametrize(
    ("loss", "strength", "whole", "slope"),
    [
        ("count", 1.0, True, 0.643940),
        ("count", 1.0, False, 0.375769),
        ("kl", 1.0, True, 0.281692),
        ("square", 2.0, True, 0.153040),  # over both classes: twice what one has, beside twice the penalty
    ],
)
def test_two_bags_by_hand(loss: str, strength: float, whole: bool, slope: float) -> None:
    train = TWO_BAGS if whole else never_whole(TWO_BAGS)
    columns = sparse.csr_array(train.rows.numeric.astype(np.float64))
    weights = fit_bags(columns, train, loss, strength)
    assert weights.coefficients == pytest.approx(np.array([[slope]]), abs=1e-6)
    assert weights.intercept == pytest.approx(np.zeros(1), abs=1e-6)


@pytest.mark.parametrize(
    ("p", "n", "exact", "normal"), [((0.5, 0.5, 0.5), 1, 0.980829, 0.977778), ((0.9, 0.2), 1, 0.301105, 0.384632)]
)
def test_the_likelihood_of_a_count_by_hand(p: tuple[float, ...], n: int, exact: float, normal: float) -> None:
    train = in_bags(rows_of([[0.0]] * len(p)), [list(range(len(p)))], [[len(p) - n, n]])
    proba = np.column_stack([1 - np.array(p), p])
    assert BagLoss("count", train)(proba)[0] == pytest.approx(exact, abs=1e-6)
    assert BagLoss("count", never_whole(train))(proba)[0] == pytest.approx(normal, abs=1e-6)


def test_count_probability_against_all_labels() -> None:
    p = np.random.default_rng(0).random(5)
    for n in range(6):
        labels = [y for y in product([0, 1], repeat=5) if sum(y) == n]
        expected = sum(float(np.prod(np.where(y, p, 1 - p))) for y in labels)
        padded = np.concatenate([p, [0, 0]])[None]
        assert count_probability(padded, np.array([n])) == pytest.approx([expected])


def bags(classes: int, size: int = 60) -> BaggedRows:
    rng = np.random.default_rng(classes)
    rows = rows_of(rng.normal(size=(size, 3)).tolist(), rng.integers(0, 3, (size, 1)).tolist())
    parts = [part.tolist() for part in np.split(rng.permutation(size), [3, 10, 22, 40])]
    return in_bags(rows, parts, [rng.multinomial(len(part), np.ones(classes) / classes).tolist() for part in parts])


@pytest.mark.parametrize("loss", BAG_LOSSES.values)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_gradients_against_finite_differences(loss: str, classes: int, noise: float) -> None:
    bag_loss = BagLoss(loss, replace(bags(classes), noise=noise))
    proba = np.random.default_rng(4).uniform(0.1, 0.8, 60 * classes)

    def value(flat: FloatArray) -> float:
        return bag_loss(flat.reshape(60, classes))[0]

    def gradient(flat: FloatArray) -> FloatArray:
        return bag_loss(flat.reshape(60, classes))[1].ravel()

    assert check_grad(value, gradient, proba) < 1e-4


def fitted(train: BaggedRows, **params: object) -> FloatArray:
    declared = METHODS.get("count-linear")
    predictor = declared(declared.Params(**params)).fit(train, schema_of(train, 3), np.random.default_rng(0))
    return np.asarray(predictor(bags(2).rows))


def test_bags_of_one_row_are_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    labels = np.random.default_rng(3).integers(0, 2, 60)
    train = in_bags(bags(2).rows, [[row] for row in range(60)], np.eye(2)[labels].tolist())
    x = LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)
    reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=1000).fit(x, labels).predict_proba(x)
    assert fitted(train, features="scores", strength=3.0) == pytest.approx(reference, abs=1e-5)


def test_the_order_of_rows_and_bags_says_nothing() -> None:
    train = bags(2)
    order = np.array([4, 2, 0, 1, 3])
    index = np.array([[*bag[bag >= 0][::-1], *bag[bag < 0]] for bag in train.index[order]])
    shuffled = replace(train, index=index, counts=train.counts[order])
    assert fitted(shuffled) == pytest.approx(fitted(train), abs=1e-4)


def test_noise_of_counts_weakens_them() -> None:
    train = never_whole(bags(2))
    spread = [fitted(replace(train, noise=noise), strength=0.1)[:, 1].std() for noise in (0.0, 3.0)]
    assert spread[1] < 0.9 * spread[0]


def test_bins_stand_beside_scores_and_missing_values_have_their_indicator() -> None:
    rows = rows_of([[float(i % 20)] if i % 7 else [float("nan")] for i in range(100)])
    schema = schema_of(in_bags(rows, [list(range(100))], [[50, 50]]))
    width = {features: LinearColumns(features, rows, schema)(rows).shape[1] for features in FEATURES.values}
    assert width == {"plain": 2, "scores": 2, "scores+bins": 12}
    bins = LinearColumns("scores+bins", rows, schema)(rows).toarray()[:, 2:]
    assert (bins.sum(axis=1) == ~rows.missing[:, 0]).all()

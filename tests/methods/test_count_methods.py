"""Methods that learn from counts, and direct methods on counts that are noisy, suppressed or in another order."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from bagged import in_bags, predict, rows_of, schema_of
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import expit
from small import toy_task

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import LinearColumns
from llpbench.blocks.linear import BAG_LOSSES, _BagLoss, fit_bags
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, FloatArray, Ragged, Rows
from llpbench.core.registry import METHODS

FAST: dict[str, dict[str, Any]] = {
    "bag-gp": {"draws": 0},
    "count-gbdt": {"trees": 100},
    "em-gbdt": {"rounds": 2, "trees": 50},
    "bag-gp-gbdt": {"trees": 100, "rounds": 2},
}
EACH = pytest.mark.parametrize("name", FAST)


def predicted(name: str, train: BaggedRows, other: Rows) -> FloatArray:
    return predict(name, train, other, 4, **FAST[name])


def some_rows(rows: int, seed: int = 0) -> tuple[Rows, FloatArray]:
    """Three numbers and a category, and the logit of the second class."""
    rng = np.random.default_rng(seed)
    numbers, codes = rng.normal(size=(rows, 3)), rng.integers(1, 4, (rows, 1))
    logit = 2 * numbers[:, 0] - numbers[:, 1] ** 2 + 1.5 * (codes[:, 0] == 2)
    return rows_of(numbers.tolist(), codes.tolist()), logit


def bagged(rows: Rows, labels: Any, bags: list[list[int]], classes: int = 2) -> BaggedRows:
    return in_bags(rows, bags, [np.bincount(labels[bag], minlength=classes).tolist() for bag in bags])


def unequal(rows: int, rng: np.random.Generator) -> list[list[int]]:
    """Bags of 1 to 40 rows that hold all of them, in a random order."""
    order, ends = rng.permutation(rows), np.cumsum(rng.integers(1, 41, rows))
    return [part.tolist() for part in np.split(order, ends[ends < rows]) if len(part)]


@EACH
@pytest.mark.parametrize("classes", [2, 3])
def test_learns_from_unequal_bags(name: str, classes: int) -> None:
    rows, logit = some_rows(2000)
    labels = (np.random.default_rng(1).random(2000) < expit(logit)).astype(int)
    if classes == 3:
        labels[rows.numeric[:, 2] > 1] = 2
    train = bagged(rows, labels, unequal(2000, np.random.default_rng(2)), classes)
    other, other_logit = some_rows(1000, seed=3)
    proba = predicted(name, train, other)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert np.corrcoef(proba[:, 1], expit(other_logit))[0, 1] > 0.7
    if classes == 3:
        assert proba[other.numeric[:, 2] > 1, 2].mean() > 2 * proba[other.numeric[:, 2] < 1, 2].mean()
    assert_allclose(proba.mean(axis=0), train.prior, atol=0.04)


def test_first_tree_is_tree_of_soft_labels() -> None:
    rows, logit = some_rows(400)
    train = bagged(rows, (logit > 0).astype(int), [list(range(i, i + 40)) for i in range(0, 400, 40)])
    settings = TreeSettings(rounds=1, leaves=4, learning_rate=0.1, penalty=1.0, features=1.0)
    found = TreeRows(rows).boost_counts(BagCounts(train), train.prior, settings, np.random.default_rng(0))(rows)[:, 1]
    pi = train.prior[1]
    moved = found - np.log(pi / (1 - pi))
    soft = train.proportions[train.bag_of_row, 1]
    leaves = np.unique(moved.round(6))
    assert len(leaves) == 4
    for value in leaves:
        inside = np.isclose(moved, value, atol=1e-5)
        expected = 0.1 * (soft[inside] - pi).sum() / (inside.sum() * pi * (1 - pi) + 1.0)
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-5)


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
def test_two_bags_match_hand_computation(loss: str, strength: float, whole: bool, slope: float) -> None:
    train = TWO_BAGS if whole else never_whole(TWO_BAGS)
    columns = sparse.csr_array(train.rows.numeric.astype(np.float64))
    weights = fit_bags(columns, train, loss, strength)
    assert weights.coefficients == pytest.approx(np.array([[slope]]), abs=1e-6)
    assert weights.intercept == pytest.approx(np.zeros(1), abs=1e-6)


def bags(classes: int, size: int = 60) -> BaggedRows:
    rng = np.random.default_rng(classes)
    rows = rows_of(rng.normal(size=(size, 3)).tolist(), rng.integers(0, 3, (size, 1)).tolist())
    parts = [part.tolist() for part in np.split(rng.permutation(size), [3, 10, 22, 40])]
    return in_bags(rows, parts, [rng.multinomial(len(part), np.ones(classes) / classes).tolist() for part in parts])


@pytest.mark.parametrize("loss", BAG_LOSSES.values)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_gradients_match_finite_differences(loss: str, classes: int, noise: float) -> None:
    bag_loss = _BagLoss(loss, replace(bags(classes), noise=noise))
    proba = np.random.default_rng(4).uniform(0.1, 0.8, 60 * classes)

    def value(flat: FloatArray) -> float:
        return bag_loss(flat.reshape(60, classes))[0]

    def gradient(flat: FloatArray) -> FloatArray:
        return bag_loss(flat.reshape(60, classes))[1].ravel()

    assert check_grad(value, gradient, proba) < 1e-4


def fitted(train: BaggedRows, **params: object) -> FloatArray:
    return predict("count-linear", train, bags(2).rows, 3, **params)


def test_single_row_bags_give_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    labels = np.random.default_rng(3).integers(0, 2, 60)
    train = in_bags(bags(2).rows, [[row] for row in range(60)], np.eye(2)[labels].tolist())
    x = LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)
    reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=1000).fit(x, labels).predict_proba(x)
    assert fitted(train, features="scores", strength=3.0) == pytest.approx(reference, abs=1e-5)


NAMES = ["bag-mean-linear", "bag-soft-label-linear", "bag-soft-label-gbdt"]
TASK = toy_task(0, unequal=True)
FEWER = {"trees": 50, "rounds": 2, "draws": 0}
BAG_PARAMS: dict[str, list[dict[str, Any]]] = {
    **{name: [{}, {"model": "logistic"}] for name in NAMES[:2]},
    "count-linear": [{"loss": loss} for loss in BAG_LOSSES.values],
}
"""hyperparameters with which a method is tried, other than the defaults alone"""
DIRECT = [
    (entry.name, params)
    for entry in METHODS.entries()
    if entry.facts["kind"] == "direct" and entry.load().supervision == "bags"
    for params in BAG_PARAMS.get(entry.name, [{}])
]


def predictions(name: str, train: BaggedRows, **params: Any) -> FloatArray:
    declared = METHODS.get(name)
    own = {field.name for field in fields(declared.Params)}
    method = declared(declared.Params(**{key: value for key, value in FEWER.items() if key in own} | params))
    schema = replace(TASK.schema, classes=train.counts.shape[1])
    return np.asarray(method.fit(train, schema, np.random.default_rng(0))(TASK.test.rows))


@pytest.mark.parametrize(("name", "params"), DIRECT)
def test_suppressed_bags_equal_absent_bags(name: str, params: dict[str, Any]) -> None:
    known = ~np.isin(np.arange(len(TASK.train.index)), [2, 5, 11])
    expected = predictions(name, TASK.train.some(known), **params)
    suppressed = replace(TASK.train, counts=np.where(known[:, None], TASK.train.counts, np.nan))
    assert np.allclose(predictions(name, suppressed, **params), expected, atol=1e-9)
    assert not np.allclose(predictions(name, TASK.train, **params), expected, atol=1e-4)


@pytest.mark.parametrize(("name", "params"), DIRECT)
def test_order_of_bags_rows_and_classes_does_not_matter(name: str, params: dict[str, Any]) -> None:
    train = toy_task(0, unequal=True).train
    order = slice(None, None, 1 if name == "bag-forest" else -1)  # it draws bags by their position
    index = [bag[bag >= 0][::-1].tolist() for bag in train.index[order]]
    turned = in_bags(train.rows, index, train.counts[order, ::-1].tolist())
    difference = predictions(name, turned, **params)[:, ::-1] - predictions(name, train, **params)
    # sums in another order may choose other splits that gain the same
    assert np.quantile(np.abs(difference), 0.9) < (0.02 if "gbdt" in name else 1e-4)


@pytest.mark.parametrize("loss", ["count", "kl"])
def test_equal_rows_computed_once_give_same_weights(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    bag = np.sort(rng.integers(0, 40, 800))
    sizes = np.bincount(bag, minlength=40)
    group, labels = rng.integers(0, 3, 800), rng.integers(0, 3, 800)
    rows = Rows(np.zeros((800, 0), np.float32), group[:, None] + 1, np.zeros((800, 0), bool))
    counts = np.stack([np.bincount(bag[labels == k], minlength=40) for k in range(3)], axis=1)
    train = BaggedRows(rows, Ragged(np.arange(800), sizes), counts.astype(np.float64))
    columns = sparse.csr_array(np.eye(3)[group])
    plain = fit_bags(columns, train, loss, 1.0)
    monkeypatch.setattr("llpbench.blocks.linear._FEWEST_ROWS", 100)
    once = fit_bags(columns, train, loss, 1.0)
    assert np.allclose(once(columns), plain(columns), atol=1e-4)

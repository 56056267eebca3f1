"""Direct methods, and rows as they take them, against known answers, references, and suppressed or reordered counts."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from bagged import in_bags, labelled, predict, rows_of, schema_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import check_grad, minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from small import toy_task

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import _MOST_CATEGORIES, BoostingRows, LinearColumns, RowBins, _ScoredRows, as_proba
from llpbench.blocks.linear import (
    BAG_LOSSES,
    FlatterLogits,
    MeanOperator,
    _are_chosen_by_label,
    _BagLoss,
    _flatter,
    fit_bags,
    linear_fit,
)
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, Ragged, Rows
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.methods.alternating_mean_map import _alternated, _AlternatingMeanMapParams
from llpbench.methods.bag_forest import _BagTargets, _grow_tree, _Growth, _split_gains
from llpbench.methods.cluster_shares import _cluster_shares
from llpbench.methods.count_bayes import _bayes_logits, _bayes_tables, _responsibilities
from llpbench.methods.inv_cal import _calibrated
from llpbench.methods.prop_svm import _best_labels, _proportion_cost, _proportion_svm

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


def test_linear_methods_solve_normal_equations() -> None:
    rows, other = standardised(TRAIN.rows, OTHER, codes=4)
    means = np.array([rows[bag].mean(axis=0) for bag in BAGS])
    proportions = np.array(COUNTS) / np.array([[3], [1], [2], [4]])
    expected = as_proba(ridge(means, proportions, np.array([3, 1, 2, 4]) / 2.5, 0.5, other))
    assert predict("bag-mean-linear", TRAIN, OTHER, 4, strength=0.5) == pytest.approx(expected, abs=1e-5)
    targets = np.array([proportions[next(b for b, bag in enumerate(BAGS) if row in bag)] for row in range(10)])
    expected = as_proba(ridge(rows, targets, np.ones(10), 2.0, other))
    assert predict("bag-soft-label-linear", TRAIN, OTHER, 4, strength=2.0) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_boosted_soft_labels_use_one_regression_for_two_classes(classes: int) -> None:
    train = toy_task(0, classes=classes, unequal=True).train
    rows_of = BoostingRows(train.rows)
    features, targets = rows_of(train.rows), train.proportions[train.bag_of_row]
    settings = {"max_iter": 5, "max_leaf_nodes": 4, "learning_rate": 0.3, "early_stopping": False}
    regression = HistGradientBoostingRegressor(**settings, categorical_features=rows_of.categorical)
    scores = np.column_stack([regression.fit(features, target).predict(features) for target in targets.T])
    if classes == 2:
        scores[:, 0] = 1 - scores[:, 1]
    found = predict("bag-soft-label-gbdt", train, train.rows, 9, trees=5, leaves=4, learning_rate=0.3)
    assert found == pytest.approx(as_proba(scores), abs=1e-6)


def made_up(classes: int, bags: int = 12, size: int = 8) -> BaggedRows:
    """Bags that differ in their proportions, and in size by one row."""
    rng = np.random.default_rng(classes)
    rows = bags * size
    labels = rng.integers(0, classes, rows)
    numbers = rng.normal(size=(rows, 3)) + labels[:, None] * [1.5, 0, -1]
    numbers[rng.random(rows) < 0.1, 1] = np.nan
    order = np.argsort(labels + rng.normal(size=rows), kind="stable")
    parts = np.split(order, np.arange(1, bags) * size + np.arange(1, bags) % 2)
    return labelled(rows_of(numbers, rng.integers(0, 3, (rows, 1))), labels, parts, classes)


def scores_of(train: BaggedRows) -> Any:
    return LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)


@pytest.mark.parametrize("classes", [2, 3])
def test_pure_and_single_row_bags_give_logistic_regression(classes: int) -> None:
    rows, labels = made_up(classes).rows, np.random.default_rng(1).integers(0, classes, 96)
    bags = [np.flatnonzero(labels == c).tolist() for c in range(classes)]
    pure = in_bags(rows, bags, np.diag([len(bag) for bag in bags]))
    x = scores_of(pure)
    reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=2000).fit(x, labels).predict_proba(x)
    assert predict("mean-map", pure, rows, 3, strength=3.0) == pytest.approx(reference, abs=1e-5)
    start = MeanOperator.of_bags(pure, x).logistic(x, 1.0)[1]
    path = _alternated(x, pure, start, _AlternatingMeanMapParams(strength=3.0))
    assert len(path) == 2  # the second finds nothing to change
    assert path[0][1].proba(x) == pytest.approx(reference, abs=1e-5)
    if classes == 2:
        alone = in_bags(rows, [[row] for row in range(96)], np.eye(2)[labels])
        found = predict("count-linear", alone, rows, 3, features="scores", strength=3.0)
        assert found == pytest.approx(reference, abs=1e-5)


def test_equal_proportions_give_equal_predictions() -> None:
    train = made_up(2)
    equal = replace(train, counts=train.sizes[:, None] * [0.25, 0.75])
    for start in ("laplacian", "means"):
        found = predict("alternating-mean-map", equal, train.rows, 3, start=start)
        assert found == pytest.approx(np.tile([0.25, 0.75], (96, 1)), abs=1e-6)


@pytest.mark.parametrize(("epsilon", "slope"), [(0.1, 0.761294), (0.0, 1.386294)])
def test_inverse_calibration_of_two_bags_matches_hand_computation(epsilon: float, slope: float) -> None:
    # the logit of .8 is 1.386294, its tolerance .1 / .16 = .625
    found = _calibrated(sparse.csr_array(np.array([[-1.0], [1.0]])), np.array([0.2, 0.8]), 1e4, epsilon)
    assert found.coefficients == pytest.approx(np.array([[slope]]), abs=1e-6)
    assert found.intercept == pytest.approx(np.zeros(1), abs=1e-6)


@pytest.mark.parametrize("numbers", [3, 25])
def test_neighbours_match_exhaustive_distances(numbers: int) -> None:
    rng = np.random.default_rng(5)
    rows, other = (rows_of(rng.normal(size=(size, numbers)), rng.integers(0, 3, (size, 1))) for size in (80, 9))
    train = in_bags(rows, np.split(rng.permutation(80), 10), [[8 - k % 8, k % 8] for k in range(10)])
    a, b = _ScoredRows(rows)(other), _ScoredRows(rows)(rows)
    apart = ((a[:, None] - b) ** 2).sum(axis=2) + (other.categorical != rows.categorical.T)
    nearest = np.argsort(apart, axis=1)[:, :5]
    expected = train.proportions[train.bag_of_row][nearest].mean(axis=1)
    assert predict("bag-soft-label-knn", train, other, 3, neighbours=5) == pytest.approx(expected)


def test_laplacian_mean_map_matches_full_linear_system() -> None:
    train = made_up(3)
    x = scores_of(train)
    sizes, means = train.sizes.astype(float), np.stack([x.toarray()[b[b >= 0]].mean(axis=0) for b in train.index])
    apart = np.linalg.norm(means[:, None] - means, axis=2)
    similar = np.exp(-apart / np.median(apart[np.triu_indices(12, 1)])) * (1 - np.eye(12))
    laplacian = np.diag(similar.sum(axis=1)) - similar
    mixing = np.hstack([np.diag(p) for p in train.proportions.T])
    weighted = mixing.T * (sizes / sizes.mean())
    small = 1e-8 * np.diag(np.tile(sizes / sizes.mean(), 3))
    system = weighted @ mixing + 0.3 * np.kron(np.eye(3), laplacian) + small
    centre = sizes @ means / sizes.sum()
    b = np.linalg.solve(system, weighted @ (means - centre)).reshape(3, 12, -1) + centre
    expected = np.einsum("k,kc,ckx->cx", sizes / sizes.sum(), train.proportions, b)
    assert MeanOperator.smooth_over_bags(train, x, 0.3).means == pytest.approx(expected, abs=1e-8)


def test_laplacian_of_many_bags_uses_nearest_bags_only(monkeypatch: pytest.MonkeyPatch) -> None:
    train = made_up(2)  # 12 bags: with eleven others, ten are nearest
    x = scores_of(train)
    dense = MeanOperator.smooth_over_bags(train, x, 0.01).means
    monkeypatch.setattr("llpbench.blocks.linear._DENSE", 0)
    assert MeanOperator.smooth_over_bags(train, x, 0.01).means == pytest.approx(dense, abs=0.02)


PROPORTIONS = np.array([0.75, 0.25, 0.5, 0.5])
FOUR_BAGS = rows_of([[x] for share in PROPORTIONS for x in [1] * round(4 * share) + [0] * round(4 - 4 * share)])


@pytest.mark.parametrize(("rho", "values"), [(1.0, (0.25, 0.75)), (1e-9, (0.0, 1.0))])
def test_tree_matches_hand_computation(rho: float, values: tuple[float, float]) -> None:
    bins, growth = RowBins(FOUR_BAGS, 16, 1), _Growth(leaves=2, rho=rho, least=1, features=1.0)
    deviations = (PROPORTIONS[:, None] - 0.5) / 0.5
    targets = _BagTargets(np.repeat(np.arange(4), 4), np.full(4, 4), np.full(4, 2.0), deviations)
    tree = _grow_tree(bins(FOUR_BAGS), bins.features, targets, growth, np.random.default_rng(0))
    found = 0.5 + 0.5 * tree(bins(rows_of([[0.0], [1.0]])))[:, 0]
    assert found == pytest.approx(values, abs=1e-6)


def test_gain_is_decrease_of_ridge_objective() -> None:
    rng = np.random.default_rng(0)
    columns, added, targets = rng.random((9, 3)), rng.random((9, 4)), rng.normal(size=(9, 2))

    def objective(x: FloatArray) -> float:
        weights = np.linalg.solve(x.T @ x + 0.7 * np.eye(x.shape[1]), x.T @ targets)
        return float(((targets - x @ weights) ** 2).sum() + 0.7 * (weights**2).sum())

    inverse = np.linalg.inv(columns.T @ columns + 0.7 * np.eye(3))
    residual = targets - columns @ inverse @ columns.T @ targets
    expected = [objective(columns) - objective(np.column_stack([columns, h])) for h in added.T]
    assert _split_gains(added, columns, inverse, residual, 0.7) == pytest.approx(expected)


@pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
def test_svm_labels_match_exhaustive_search(weight: float) -> None:
    rng = np.random.default_rng(0)
    bags = [[5, 0, 3], [1], [2, 4, 6, 7]]
    train = in_bags(rows_of([[0.0]] * 8), bags, [[1, 2], [0, 1], [3, 1]])
    shares = np.array([0.4, 0.9, 0.2])
    for _ in range(5):
        scores = rng.normal(size=8) * 2

        def cost(labels: BoolArray, scores: FloatArray = scores) -> float:
            signs = np.where(labels, 1, -1)
            rows = np.maximum(1 - signs * scores, 0).sum()
            return float(rows + weight * _proportion_cost(labels, train, shares))

        found = _best_labels(scores, train, shares, weight)
        assert cost(found) == pytest.approx(min(cost(y) for y in map(np.array, product([False, True], repeat=8))))


def test_single_row_bags_give_support_vector_machine() -> None:
    train = made_up(2)
    labels = np.arange(96) % 3 == 0
    alone = in_bags(train.rows, [[row] for row in range(96)], np.eye(2)[labels.astype(int)])
    x = scores_of(alone)
    found = _proportion_svm(x, alone, alone.proportions[:, 1], labels, 0.1, 100.0, anneal=False)[1]
    reference = SVC(kernel="linear", C=0.1, tol=1e-5).fit(x.toarray(), labels).decision_function(x.toarray())
    assert np.abs(found(x)[:, 0] - reference).max() < 0.1  # corners are rounded


def test_cluster_shares_are_bounded_and_shrink_to_prior() -> None:
    inside, shares = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0.5, 0.26])
    found = _cluster_shares(inside, np.column_stack([1 - shares, shares]), np.ones(2), np.array([0.5, 0.5]), 0.0)
    assert found == pytest.approx(np.array([[0.1, 0.9], [0.9, 0.1]]), abs=1e-6)
    inside, shares = np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([0.9, 0.0])
    p, prior = np.column_stack([1 - shares, shares]), np.array([0.55, 0.45])
    assert _cluster_shares(inside, p, np.ones(2), prior, 1e-6)[:, 1] == pytest.approx([1, 0], abs=1e-2)
    assert _cluster_shares(inside, p, np.ones(2), prior, 1e6) == pytest.approx(np.tile(prior, (2, 1)), abs=1e-5)


def test_bayes_tables_and_shift_of_two_bags_match_hand_computation() -> None:
    train = in_bags(rows_of([[0.0]] * 8), [[0, 1, 2, 3], [4, 5, 6, 7]], [[1, 3], [3, 1]])
    codes = np.array([[1, 1, 1, 0, 1, 0, 0, 0]])
    q = train.proportions[train.bag_of_row]
    tables = _bayes_tables(codes, [2], q, 0.0)
    assert np.exp(tables[0][1]) == pytest.approx([0.375, 0.625])
    logits = _bayes_logits(codes, tables, train.prior)
    counts = BagCounts(train)
    shift = counts.shifts(logits)
    assert shift[0, 1] - shift[0, 0] == pytest.approx(0.889138, abs=1e-5)
    q = _responsibilities(counts, logits, "shift")[:4, 1]
    assert q == pytest.approx([0.802178] * 3 + [0.593466], abs=1e-5)


FAST: dict[str, dict[str, Any]] = {
    "bag-gp": {"draws": 0},
    "count-gbdt": {"trees": 100},
    "em-gbdt": {"rounds": 2, "trees": 50},
    "bag-gp-gbdt": {"trees": 100, "rounds": 2},
}


def some_rows(rows: int, seed: int = 0) -> tuple[Rows, FloatArray]:
    """Three numbers and a category, and the logit of the second class."""
    rng = np.random.default_rng(seed)
    numbers, codes = rng.normal(size=(rows, 3)), rng.integers(1, 4, (rows, 1))
    logit = 2 * numbers[:, 0] - numbers[:, 1] ** 2 + 1.5 * (codes[:, 0] == 2)
    return rows_of(numbers, codes), logit


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("classes", [2, 3])
def test_learns_from_unequal_bags(name: str, classes: int) -> None:
    rows, logit = some_rows(2000)
    labels = (np.random.default_rng(1).random(2000) < expit(logit)).astype(int)
    if classes == 3:
        labels[rows.numeric[:, 2] > 1] = 2
    rng = np.random.default_rng(2)
    order, ends = rng.permutation(2000), np.cumsum(rng.integers(1, 41, 2000))
    train = labelled(rows, labels, np.split(order, ends[ends < 2000]), classes)
    other, other_logit = some_rows(1000, seed=3)
    proba = predict(name, train, other, 4, **FAST[name])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert np.corrcoef(proba[:, 1], expit(other_logit))[0, 1] > 0.7
    if classes == 3:
        assert proba[other.numeric[:, 2] > 1, 2].mean() > 2 * proba[other.numeric[:, 2] < 1, 2].mean()
    assert_allclose(proba.mean(axis=0), train.prior, atol=0.04)


def test_first_tree_is_tree_of_soft_labels() -> None:
    rows, logit = some_rows(400)
    train = labelled(rows, (logit > 0).astype(int), np.arange(400).reshape(10, 40))
    settings = TreeSettings(rounds=1, leaves=4, learning_rate=0.1, penalty=1.0, features=1.0)
    found = TreeRows(train).boost_counts(settings, 0)(rows)[:, 1]
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
    train = TWO_BAGS if whole else replace(TWO_BAGS, counts=TWO_BAGS.counts + 1e-10)  # so their likelihood is normal
    columns = sparse.csr_array(train.rows.numeric.astype(np.float64))
    weights = fit_bags(columns, train, loss, strength)
    assert weights.coefficients == pytest.approx(np.array([[slope]]), abs=1e-6)
    assert weights.intercept == pytest.approx(np.zeros(1), abs=1e-6)


def bags(classes: int, size: int = 60) -> BaggedRows:
    rng = np.random.default_rng(classes)
    rows = rows_of(rng.normal(size=(size, 3)), rng.integers(0, 3, (size, 1)))
    parts = np.split(rng.permutation(size), [3, 10, 22, 40])
    return in_bags(rows, parts, [rng.multinomial(len(part), np.ones(classes) / classes) for part in parts])


@pytest.mark.parametrize("loss", BAG_LOSSES.values)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_gradients_match_finite_differences(loss: str, classes: int, noise: float) -> None:
    bag_loss = _BagLoss(loss, replace(bags(classes), noise=noise))
    proba = np.random.default_rng(4).uniform(0.1, 0.8, 60 * classes)

    def at(flat: FloatArray) -> tuple[float, FloatArray]:
        return bag_loss(flat.reshape(60, classes))

    assert check_grad(lambda flat: at(flat)[0], lambda flat: at(flat)[1].ravel(), proba) < 1e-4


TASK = toy_task(0, unequal=True)
FEWER = {"trees": 50, "rounds": 2, "draws": 0}
BAG_PARAMS: dict[str, list[dict[str, Any]]] = {
    **{name: [{}, {"model": "logistic"}] for name in ("bag-mean-linear", "bag-soft-label-linear")},
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
def test_bags_matter_and_their_order_does_not(name: str, params: dict[str, Any]) -> None:
    train = TASK.train
    usual, known = predictions(name, train, **params), ~np.isin(np.arange(len(train.index)), [2, 5, 11])
    expected = predictions(name, train.some(known), **params)
    assert not np.allclose(usual, expected, atol=1e-4)
    order = slice(None, None, 1 if name == "bag-forest" else -1)  # it draws bags by their position
    index = [bag[bag >= 0][::-1] for bag in train.index[order]]
    turned = in_bags(train.rows, index, train.counts[order, ::-1])
    difference = predictions(name, turned, **params)[:, ::-1] - usual
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
    monkeypatch.setattr("llpbench.blocks.distinct._FEWEST_ROWS", 100)
    once = fit_bags(columns, train, loss, 1.0)
    assert np.allclose(once(columns), plain(columns), atol=1e-4)


def test_scores_beyond_edges_approach_bounds_exponentially() -> None:
    inside = np.array([[0.05, 0.95], [0.5, 0.5], [0.7, 0.3], [0.2, 0.8]])
    assert as_proba(inside) == pytest.approx(inside)
    scores = np.array([[0.0, 1.0], [-0.05, 1.05], [2.0, -1.0]])
    low, lower, lowest = 0.05 * np.exp([-1.0, -2.0, -21.0])
    expected = [[low, 1 - low], [lower, 1 - lower], [1 - lowest, lowest]]
    assert as_proba(scores) == pytest.approx(np.array(expected), rel=1e-9)
    raised = 0.05 * np.exp(-3)  # of -0.1
    several = np.array([[raised, 0.6, 0.9]]) / (raised + 0.6 + 0.9)
    assert as_proba(np.array([[-0.1, 0.6, 0.9]])) == pytest.approx(several)


def test_class_order_is_kept_without_ties() -> None:
    positive = np.linspace(-1.0, 2.0, 301)
    proba = as_proba(np.column_stack([1 - positive, positive]))[:, 1]
    assert (np.diff(proba) > 0).all()
    assert 0 < proba.min() < proba.max() < 1


FEATURES = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [1.5, 2.0]])
TARGETS = np.array([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4], [0.2, 0.4, 0.4], [0.4, 0.5, 0.1]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0])


def least_cross_entropy(targets: FloatArray, strength: float) -> FloatArray:
    """Predictions at the least sum_i w_i H(p_i, softmax(b + x_i A)) + strength / 2 |A|^2, found by plain descent."""
    columns, classes = FEATURES.shape[1], targets.shape[1]

    def proba(flat: FloatArray) -> FloatArray:
        return np.asarray(softmax(flat[:classes] + FEATURES @ flat[classes:].reshape(columns, classes), axis=1))

    def objective(flat: FloatArray) -> float:
        fit = -(WEIGHTS[:, None] * targets * np.log(proba(flat))).sum()
        return float(fit + strength / 2 * (flat[classes:] ** 2).sum())

    found = minimize(objective, np.zeros((columns + 1) * classes), method="BFGS", options={"gtol": 1e-7})
    return proba(found.x)


def test_logistic_fit_minimises_soft_cross_entropy_with_one_coefficient_set_for_two_classes() -> None:
    binary = np.column_stack([TARGETS[:, 0], 1 - TARGETS[:, 0]])
    # two sets a and -a cost 2 |a|^2, the one set 2 a that does the same costs 4 |a|^2: twice as much
    for targets, strength in ((TARGETS, 0.7), (binary, 2 * 0.7)):
        found = linear_fit("logistic", sparse.csr_array(FEATURES), targets, WEIGHTS, 0.7).proba(FEATURES)
        assert found == pytest.approx(least_cross_entropy(targets, strength), abs=2e-4)


def test_logistic_fit_of_a_single_class_predicts_it_everywhere() -> None:
    only_second = np.zeros_like(TARGETS)
    only_second[:, 1] = 1.0
    found = linear_fit("logistic", sparse.csr_array(FEATURES), only_second, WEIGHTS, 0.7).proba(FEATURES)
    assert found == pytest.approx(np.broadcast_to(found[0], found.shape))
    assert found[0].argmax() == 1


def test_scores_of_other_rows_match_definition() -> None:
    rng = np.random.default_rng(0)
    train, other = rng.integers(0, 9, 40).astype(float), rng.uniform(-1, 10, 30).round(1)

    def score(x: float) -> float:
        u = ((train < x).sum() + (train <= x).sum()) / 80
        return float(norm.ppf(min(max(u, 1 / 80), 1 - 1 / 80)))

    reference = np.array([score(x) for x in train])
    expected = (np.array([score(x) for x in other]) - reference.mean()) / reference.std()
    found = _ScoredRows(rows_of(train.reshape(-1, 1)))(rows_of(other.reshape(-1, 1)))
    assert found[:, 0] == pytest.approx(expected, abs=1e-9)


# the second number is never there; the category's code 2 is more frequent than 1, 3 is unseen, 0 is missing
CODED = rows_of([[1, NAN], [NAN, NAN], [3, NAN], [4, NAN], [5, NAN]], [[2], [1], [2], [4], [0]])


def test_categories_are_numbered_by_frequency() -> None:
    expected = [[1, 0, 0], [NAN, 0, 1], [3, 0, 0], [4, 0, 2], [5, 0, NAN]]
    assert_array_equal(BoostingRows(CODED)(CODED), np.array(expected))


def test_other_rows_use_training_codes() -> None:
    # a number where training had none, categories that training did not have, within its codes and beyond
    other = rows_of([[NAN, 9], [2, 9], [3, NAN]], [[3], [7], [1]])
    assert_array_equal(BoostingRows(CODED)(other), np.array([[NAN, 0, NAN], [2, 0, NAN], [3, 0, 1]]))


def test_only_most_frequent_categories_are_kept() -> None:
    # each of 300 categories once, the last 200 of them twice: these come first, then the others as they stand
    codes = np.concatenate([np.arange(1, 301), np.arange(101, 301)])
    rows = rows_of(np.zeros((len(codes), 1)), codes.reshape(-1, 1))
    found = BoostingRows(rows)(rows)[:300, 1]
    assert_array_equal(found[100:], np.arange(200))
    assert_array_equal(found[:54], np.arange(200, _MOST_CATEGORIES))
    assert np.isnan(found[54:100]).all()


NUMBER, SIZE = 60, 50


def world(kind: str, classes: int, seed: int = 0) -> tuple[BaggedRows, FloatArray]:
    """Bags of a kind, and the true log probabilities of rows, whose classes are normal with means 2 apart."""
    rng = generator(seed, kind, str(classes))
    if kind == "label":
        shares = rng.dirichlet(np.ones(classes), size=NUMBER)
        labels = np.concatenate([rng.choice(classes, SIZE, p=share) for share in shares])
    else:
        labels = rng.integers(classes, size=NUMBER * SIZE)
    columns = rng.normal(size=(NUMBER * SIZE, 3))
    columns[:, 0] += 2 * labels
    prior = np.bincount(labels) / len(labels)
    truth = log_softmax(np.log(prior) - 0.5 * (columns[:, :1] - 2 * np.arange(classes)) ** 2, axis=1)
    order = {
        "label": np.arange(len(labels)),
        "random": rng.permutation(len(labels)),
        "ordered": columns[:, 0].argsort(),
    }
    counts = np.zeros((NUMBER, labels.max() + 1))
    np.add.at(counts, (np.repeat(np.arange(NUMBER), SIZE), labels[order[kind]]), 1.0)
    return BaggedRows(rows_of(columns), Ragged(order[kind], np.full(NUMBER, SIZE)), counts), truth


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["label", "random", "ordered"])
def test_only_bags_with_rows_chosen_by_label_are_recognised(kind: str, classes: int) -> None:
    for seed in range(5):
        train, _ = world(kind, classes, seed)
        assert _are_chosen_by_label(train, schema_of(train)) is (kind == "label")
        if (kind, classes) == ("random", 2):  # noise of counts is no choice by label
            noisy = train.counts + np.random.default_rng(0).normal(scale=20, size=(NUMBER, 1)) * [1, -1]
            train = replace(train, counts=np.clip(noisy, 0, SIZE), noise=20.0)
            assert not _are_chosen_by_label(train, schema_of(train))


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_that_are_too_steep_become_true_ones(classes: int) -> None:
    train, truth = world("label", classes)
    found = _flatter(4 * truth, train)
    assert found.slope == pytest.approx(1 / 4, rel=0.15)
    corrected = np.exp(log_softmax(found(4 * truth), axis=1))
    assert np.abs(corrected - np.exp(truth)).mean() < 0.03
    assert _flatter(truth / 4, train).slope == 1.0  # bags can only say that a fit went too far


@pytest.mark.parametrize("name", ["bag-gp", "bag-gp-gbdt"])
def test_methods_correct_probabilities_of_rows_chosen_by_label(name: str) -> None:
    train, truth = world("label", 2)
    proba = predict(name, train, train.rows)
    loss = -(np.exp(truth) * np.log(np.clip(proba, 1e-9, None))).sum(axis=1).mean()
    best, constant = -(np.exp(truth) * truth).sum(axis=1).mean(), np.log(2)
    assert loss < best + 0.2 * (constant - best)
    predictor = METHODS.get(name)().fit(train, schema_of(train), np.random.default_rng(0))
    steep = replace(predictor, flatter=FlatterLogits())
    found, plain = (sum(effect.importance for effect in each.effects()) for each in (predictor, steep))
    assert found == pytest.approx(predictor.flatter.slope * plain)


def test_correction_does_not_depend_on_order_of_bags() -> None:
    train, _ = world("label", 2)
    order = train.proportions[:, 1].argsort()
    alternating = np.stack([order[: NUMBER // 2], order[NUMBER // 2 :]], axis=1).ravel()
    slopes = []
    for bags in (order, alternating):
        rows = Ragged(np.asarray(train.bag_by_bag.reshape(NUMBER, SIZE)[bags].ravel()), train.sizes)
        ordered = replace(train, index=rows, counts=train.counts[bags])
        slopes.append(METHODS.get("bag-gp")().fit(ordered, schema_of(train), np.random.default_rng(0)).flatter.slope)
    assert slopes[0] < 0.9
    assert slopes[1] == pytest.approx(slopes[0], rel=0.1)


@pytest.mark.parametrize("name", ["count-gbdt", "em-gbdt", "bag-forest"])
def test_values_lacking_only_in_new_rows_are_no_extremes(name: str) -> None:
    rng = np.random.default_rng(0)
    number, category = rng.normal(size=1500), rng.integers(1, 7, 1500)
    for column, low, high, lacking in (
        (number, (-3, 1, False), (3, 1, False), (0, 1, True)),
        (category == 6, (0, 1, False), (0, 6, False), (0, 0, False)),  # the most frequent branch is that of the others
    ):
        labels = rng.random(1500) < 1 / (1 + np.exp(1 - 2 * column))
        counts = np.stack([30 - labels.reshape(-1, 30).sum(axis=1), labels.reshape(-1, 30).sum(axis=1)], axis=1)
        train = in_bags(rows_of(number[:, None], category[:, None]), np.arange(1500).reshape(-1, 30), counts)
        numbers, codes, gaps = map(np.array, zip(low, high, lacking, strict=True))
        new = Rows(numbers[:, None].astype(np.float32), codes[:, None], gaps[:, None])
        least, most, found = predict(name, train, new, 7)[:, 1]
        assert found - least < 0.8 * (most - least)


def test_bins_unseen_in_training_are_no_evidence() -> None:
    rng = np.random.default_rng(0)
    labels, codes = rng.random(2000) < 0.1, rng.integers(1, 4, (2000, 1))
    counts = np.stack([20 - labels.reshape(-1, 20).sum(axis=1), labels.reshape(-1, 20).sum(axis=1)], axis=1)
    train = in_bags(rows_of(np.zeros((2000, 1)), codes), np.arange(2000).reshape(-1, 20), counts)
    new = Rows(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int64), np.ones((1, 1), bool))
    assert predict("count-bayes", train, new, 5)[0] == pytest.approx(train.prior)


def test_equally_near_rows_are_chosen_at_random() -> None:
    shares = np.linspace(0, 1, 21)  # of bags of 20 rows that are all equal
    train = in_bags(rows_of(np.zeros((420, 1))), np.arange(420).reshape(21, 20), 20 * np.stack([1 - shares, shares], 1))
    assert predict("bag-soft-label-knn", train, rows_of([[0.0]]))[0, 1] == pytest.approx(0.5, abs=0.15)


def test_noise_of_counts_does_not_change_their_sum() -> None:
    train = replace(TRAIN, counts=np.array([[-2.0, 1, 4], [3, -1, -1], [0, 2, 0], [1, 2, 1]]), noise=2.0)
    assert train.prior == pytest.approx([0.2, 0.4, 0.4])


@pytest.mark.parametrize("name", ["supervised-gbdt", "validation-labels"])
def test_labels_of_one_class_predict_it(name: str) -> None:
    train = toy_task(0).train
    alone = replace(train, counts=train.sizes[:, None] * np.eye(2)[1])
    assert predict(name, alone, train.rows)[:, 1].min() == 1.0

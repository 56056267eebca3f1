"""bag-forest against a tree by hand and refits of the whole ridge system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bagged import in_bags, rows_of
from test_classical_methods import predict

from llpbench.blocks.bag_trees import BagTargets, Growth, grow_tree, split_gains
from llpbench.blocks.binning import RowBins

PROPORTIONS = np.array([0.75, 0.25, 0.5, 0.5])
FOUR_BAGS = rows_of([[x] for share in PROPORTIONS for x in [1] * round(4 * share) + [0] * round(4 - 4 * share)])


def bags_of_four() -> BagTargets:
    targets = (PROPORTIONS[:, None] - 0.5) / 0.5
    return BagTargets(np.repeat(np.arange(4), 4), np.full(4, 4), np.full(4, 2.0), targets)


@pytest.mark.parametrize(("rho", "values"), [(1.0, (0.25, 0.75)), (1e-9, (0.0, 1.0))])
def test_a_tree_by_hand(rho: float, values: tuple[float, float]) -> None:
    bins, growth = RowBins(FOUR_BAGS, 16, 1), Growth(leaves=2, rho=rho, least=1, features=1.0)
    tree = grow_tree(bins(FOUR_BAGS), bins.features, bags_of_four(), growth, np.random.default_rng(0))
    found = 0.5 + 0.5 * tree(bins(rows_of([[0.0], [1.0]])))[:, 0]
    assert found == pytest.approx(values, abs=1e-6)


def test_the_gain_by_hand() -> None:
    columns, targets = np.full((4, 1), 2.0), np.array([[1.0], [-1.0], [0.0], [0.0]])
    inverse = np.linalg.inv(columns.T @ columns + np.eye(1))
    assert split_gains(2 * PROPORTIONS[:, None], columns, inverse, targets, 1.0) == pytest.approx([0.576271], abs=1e-6)


def test_gains_are_what_a_column_takes_off_the_ridge_objective() -> None:
    rng = np.random.default_rng(0)
    columns, added, targets = rng.random((9, 3)), rng.random((9, 4)), rng.normal(size=(9, 2))

    def objective(x: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
        weights = np.linalg.solve(x.T @ x + 0.7 * np.eye(x.shape[1]), x.T @ targets)
        return float(((targets - x @ weights) ** 2).sum() + 0.7 * (weights**2).sum())

    inverse = np.linalg.inv(columns.T @ columns + 0.7 * np.eye(3))
    residual = targets - columns @ inverse @ columns.T @ targets
    expected = [objective(columns) - objective(np.column_stack([columns, h])) for h in added.T]
    assert split_gains(added, columns, inverse, residual, 0.7) == pytest.approx(expected)


def test_it_learns_what_bags_say_of_a_number_and_of_a_category() -> None:
    rng = np.random.default_rng(1)
    numbers, codes = rng.normal(size=3000), rng.integers(0, 4, 3000)
    share = np.where(numbers > 0.3, 0.6, 0.1) + np.where(codes == 2, 0.3, 0.0)
    order = np.argsort(numbers + codes + 2 * rng.normal(size=3000)).reshape(100, 30)
    counts = share[order].sum(axis=1)
    rows = rows_of(numbers[:, None].tolist(), codes[:, None].tolist())
    train = in_bags(rows, order.tolist(), np.column_stack([30 - counts, counts]).tolist())
    found = predict("bag-forest", train, rows)[:, 1]
    assert np.corrcoef(found, share)[0, 1] > 0.95
    noisy = predict("bag-forest", replace(train, noise=50.0), rows)[:, 1]
    assert noisy.std() < 0.7 * found.std()

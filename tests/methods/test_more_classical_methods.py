"""bag-forest, prop-svm, cluster-shares and count-bayes against known answers and independent references."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bagged import in_bags, rows_of, schema_of
from test_classical_methods import made_up

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import LinearColumns, RowBins
from llpbench.core.bags import BoolArray, FloatArray
from llpbench.methods.bag_forest import _BagTargets, _grow_tree, _Growth, _split_gains
from llpbench.methods.cluster_shares import _cluster_shares
from llpbench.methods.count_bayes import _bayes_logits, _bayes_tables, _responsibilities
from llpbench.methods.prop_svm import _best_labels, _proportion_cost, _proportion_svm

PROPORTIONS = np.array([0.75, 0.25, 0.5, 0.5])
FOUR_BAGS = rows_of([[x] for share in PROPORTIONS for x in [1] * round(4 * share) + [0] * round(4 - 4 * share)])


def bags_of_four() -> _BagTargets:
    targets = (PROPORTIONS[:, None] - 0.5) / 0.5
    return _BagTargets(np.repeat(np.arange(4), 4), np.full(4, 4), np.full(4, 2.0), targets)


@pytest.mark.parametrize(("rho", "values"), [(1.0, (0.25, 0.75)), (1e-9, (0.0, 1.0))])
def test_tree_matches_hand_computation(rho: float, values: tuple[float, float]) -> None:
    bins, growth = RowBins(FOUR_BAGS, 16, 1), _Growth(leaves=2, rho=rho, least=1, features=1.0)
    tree = _grow_tree(bins(FOUR_BAGS), bins.features, bags_of_four(), growth, np.random.default_rng(0))
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


class TestPropSVM:
    @pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
    def test_labels_match_exhaustive_search(self, weight: float) -> None:
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

    def test_single_row_bags_give_support_vector_machine(self) -> None:
        from sklearn.svm import SVC

        train = made_up(2)
        labels = np.arange(96) % 3 == 0
        alone = in_bags(train.rows, [[row] for row in range(96)], np.eye(2)[labels.astype(int)].tolist())
        x = LinearColumns("scores", train.rows, schema_of(alone, 3))(train.rows)
        found = _proportion_svm(x, alone, alone.proportions[:, 1], labels, 0.1, 100.0, anneal=False)[1]
        reference = SVC(kernel="linear", C=0.1, tol=1e-5).fit(x.toarray(), labels).decision_function(x.toarray())
        assert np.abs(found(x)[:, 0] - reference).max() < 0.1  # corners are rounded


class TestClusterShares:
    def test_cluster_shares_are_bounded_and_shrink_to_prior(self) -> None:
        inside, shares = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0.5, 0.26])
        found = _cluster_shares(inside, np.column_stack([1 - shares, shares]), np.ones(2), np.array([0.5, 0.5]), 0.0)
        assert found == pytest.approx(np.array([[0.1, 0.9], [0.9, 0.1]]), abs=1e-6)
        inside, shares = np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([0.9, 0.0])
        p, prior = np.column_stack([1 - shares, shares]), np.array([0.55, 0.45])
        assert _cluster_shares(inside, p, np.ones(2), prior, 1e-6)[:, 1] == pytest.approx([1, 0], abs=1e-2)
        assert _cluster_shares(inside, p, np.ones(2), prior, 1e6) == pytest.approx(np.tile(prior, (2, 1)), abs=1e-5)


class TestCountBayes:
    def test_two_bags_match_hand_computation(self) -> None:
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

"""Classical methods against known answers and independent references."""

from __future__ import annotations

from dataclasses import replace

import bagged
import numpy as np
import pytest
from bagged import in_bags, rows_of, schema_of
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from llpbench.blocks.design import LinearColumns
from llpbench.blocks.linear import LogitWeights, MeanOperator
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.methods.alternating_mean_map import _alternated, _AlternatingMeanMapParams
from llpbench.methods.inv_cal import _calibrated


def made_up(classes: int, bags: int = 12, size: int = 8) -> BaggedRows:
    """Bags that differ in their proportions, and in size by one row."""
    rng = np.random.default_rng(classes)
    rows = bags * size
    labels = rng.integers(0, classes, rows)
    numbers = rng.normal(size=(rows, 3)) + labels[:, None] * [1.5, 0, -1]
    numbers[rng.random(rows) < 0.1, 1] = np.nan
    order = np.argsort(labels + rng.normal(size=rows), kind="stable")
    parts = np.split(order, np.arange(1, bags) * size + np.arange(1, bags) % 2)
    counts = [np.bincount(labels[part], minlength=classes).tolist() for part in parts]
    return in_bags(
        rows_of(numbers.tolist(), rng.integers(0, 3, (rows, 1)).tolist()), [p.tolist() for p in parts], counts
    )


def pure_bags(classes: int) -> tuple[BaggedRows, IntArray]:
    """A bag of each class, and the labels of its rows."""
    rows, labels = made_up(classes).rows, np.random.default_rng(1).integers(0, classes, 96)
    bags = [np.flatnonzero(labels == c).tolist() for c in range(classes)]
    return in_bags(rows, bags, np.diag([len(bag) for bag in bags]).tolist()), labels


def predict(name: str, train: BaggedRows, other: Rows, **params: object) -> FloatArray:
    return bagged.predict(name, train, other, *(3,) * train.rows.categorical.shape[1], **params)


class TestMeanMap:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_pure_bags_give_logistic_regression(self, classes: int) -> None:
        pure, labels = pure_bags(classes)
        x = LinearColumns("scores", pure.rows, schema_of(pure, 3))(pure.rows)
        reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=2000).fit(x, labels).predict_proba(x)
        assert predict("mean-map", pure, pure.rows, strength=3.0) == pytest.approx(reference, abs=1e-5)


class TestInvCal:
    @pytest.mark.parametrize(("epsilon", "slope"), [(0.1, 0.761294), (0.0, 1.386294)])
    def test_two_bags_match_hand_computation(self, epsilon: float, slope: float) -> None:
        # the logit of .8 is 1.386294, its tolerance .1 / .16 = .625
        found = _calibrated(sparse.csr_array(np.array([[-1.0], [1.0]])), np.array([0.2, 0.8]), 1e4, epsilon)
        assert found.coefficients == pytest.approx(np.array([[slope]]), abs=1e-6)
        assert found.intercept == pytest.approx(np.zeros(1), abs=1e-6)


class TestNeighbours:
    @pytest.mark.parametrize("numbers", [3, 25])
    def test_neighbours_match_exhaustive_distances(self, numbers: int) -> None:
        from llpbench.blocks.design import _ScoredRows

        rng = np.random.default_rng(5)
        rows = rows_of(rng.normal(size=(80, numbers)).tolist(), rng.integers(0, 3, (80, 1)).tolist())
        bags = np.split(rng.permutation(80), 10)
        train = in_bags(rows, [bag.tolist() for bag in bags], [[8 - k % 8, k % 8] for k in range(10)])
        other = rows_of(rng.normal(size=(9, numbers)).tolist(), rng.integers(0, 3, (9, 1)).tolist())
        a, b = _ScoredRows(rows)(other), _ScoredRows(rows)(rows)
        apart = ((a[:, None] - b) ** 2).sum(axis=2) + (other.categorical != rows.categorical.T)
        nearest = np.argsort(apart, axis=1)[:, :5]
        expected = train.proportions[train.bag_of_row][nearest].mean(axis=1)
        assert predict("bag-soft-label-knn", train, other, neighbours=5) == pytest.approx(expected)


class TestLaplacianMeanMap:
    def test_solution_matches_full_linear_system(self) -> None:
        train = made_up(3)
        x = LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)
        sizes, means = train.sizes.astype(float), np.stack([x.toarray()[b[b >= 0]].mean(axis=0) for b in train.index])
        apart = np.linalg.norm(means[:, None] - means, axis=2)
        similar = np.exp(-apart / np.median(apart[np.triu_indices(12, 1)])) * (1 - np.eye(12))
        laplacian = np.diag(similar.sum(axis=1)) - similar
        mixing = np.hstack([np.diag(p) for p in train.proportions.T])
        weighted = mixing.T * (sizes / sizes.mean())
        system = (
            weighted @ mixing + 0.3 * np.kron(np.eye(3), laplacian) + 1e-8 * np.diag(np.tile(sizes / sizes.mean(), 3))
        )
        centre = sizes @ means / sizes.sum()
        b = np.linalg.solve(system, weighted @ (means - centre)).reshape(3, 12, -1) + centre
        expected = np.einsum("k,kc,ckx->cx", sizes / sizes.sum(), train.proportions, b)
        assert MeanOperator.smooth_over_bags(train, x, 0.3).means == pytest.approx(expected, abs=1e-8)

    def test_many_bags_use_nearest_bags_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        train = made_up(2)  # 12 bags: with eleven others, ten are nearest
        x = LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)
        dense = MeanOperator.smooth_over_bags(train, x, 0.01).means
        monkeypatch.setattr("llpbench.blocks.linear._DENSE", 0)
        assert MeanOperator.smooth_over_bags(train, x, 0.01).means == pytest.approx(dense, abs=0.02)


class TestAlternatingMeanMap:
    def path(self, train: BaggedRows, **params: object) -> list[tuple[float, LogitWeights]]:
        x = LinearColumns("scores", train.rows, schema_of(train, 3))(train.rows)
        start = MeanOperator.of_bags(train, x).logistic(x, 1.0)[1]
        path: list[tuple[float, LogitWeights]]
        path = _alternated(x, train, start, _AlternatingMeanMapParams(strength=1.0, **params))  # type: ignore[arg-type]
        return path

    @pytest.mark.parametrize("classes", [2, 3])
    def test_pure_bags_need_one_logistic_refit(self, classes: int) -> None:
        pure, labels = pure_bags(classes)
        x = LinearColumns("scores", pure.rows, schema_of(pure, 3))(pure.rows)
        path = self.path(pure)
        assert len(path) == 2  # the second finds nothing to change
        reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=2000).fit(x, labels).predict_proba(x)
        assert path[0][1].proba(x) == pytest.approx(reference, abs=1e-5)

    def test_equal_proportions_give_equal_predictions(self) -> None:
        train = made_up(2)
        equal = replace(train, counts=train.sizes[:, None] * [0.25, 0.75])
        for start in ("laplacian", "means"):
            found = predict("alternating-mean-map", equal, train.rows, start=start)
            assert found == pytest.approx(np.tile([0.25, 0.75], (96, 1)), abs=1e-6)

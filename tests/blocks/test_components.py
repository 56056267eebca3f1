"""Bins, components and the process on them against dense references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bagged import in_bags, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from llpbench.blocks.bag_process import FittedProcess, ProcessSettings, _fit_process
from llpbench.blocks.components import Components
from llpbench.blocks.design import RowBins
from llpbench.core.bags import BaggedRows, FloatArray, Rows

NAN = float("nan")


def some_rows(rows: int = 60, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 3))
    numbers[rng.random(rows) < 0.2, 1] = NAN
    numbers[:, 2] = 1.5  # constant
    return rows_of(numbers.tolist(), rng.integers(0, 4, (rows, 1)).tolist())


def in_groups(rows: Rows, size: int, labels: FloatArray) -> BaggedRows:
    """Neighbours in bags of this size, with the counts of these labels."""
    bags = np.arange(len(labels)).reshape(-1, size)
    positive = labels[bags].sum(axis=1)
    return in_bags(rows, bags.tolist(), np.stack([size - positive, positive], axis=1).tolist())


class TestBins:
    def test_numbers_are_binned_by_quantile_with_missing_apart(self) -> None:
        rows = rows_of([[float(i)] for i in range(8)] + [[NAN], [NAN]])
        bins = RowBins(rows, 4, 10)
        assert_array_equal(bins(rows), [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]])
        feature = bins.features[0]
        assert_allclose(feature.weights, [0.2] * 5)
        assert_allclose(feature.positions, [0.125, 0.375, 0.625, 0.875, NAN])  # type: ignore[arg-type]
        assert_array_equal(bins(rows_of([[-100.0], [100.0]])), [[0, 3]])

    def test_rare_and_unseen_categories_share_the_last_bin(self) -> None:
        codes = [[3]] * 4 + [[1]] * 3 + [[2]] * 2 + [[0]]
        bins = RowBins(rows_of([[]] * len(codes), codes), 4, 2)
        assert_array_equal(bins(rows_of([[]] * 5, [[3], [1], [2], [0], [9]])), [[0, 1, 2, 2, 2]])
        assert_allclose(bins.features[0].weights, [0.4, 0.3, 0.3])


class TestComponents:
    def components(self, rows: Rows) -> Components:
        found = Components(rows, np.random.default_rng(0), lengthscale=0.3, waves=20)
        found.effects += [found.pair(0, 1), found.pair(0, 3), found.pair(2, 3)]
        return found

    def dense(self, found: Components, rows: Rows) -> list[FloatArray]:
        """[rows, features] of every component."""
        binned = found.bin(rows)
        columns = found.columns(binned)
        return [e.factor[found.codes(e, binned)] for e in found.effects] + [joint(columns) for joint in found.joint]

    def test_components_have_mean_zero_and_variance_one(self) -> None:
        rows = some_rows()
        for i, features in enumerate(self.dense(self.components(rows), rows)):
            assert_allclose(features.mean(axis=0), 0, atol=1e-5)
            constant = i == 2
            assert (features**2).sum(axis=1).mean() == pytest.approx(0.0 if constant else 1.0, abs=1e-5)

    def test_effects_have_kernel_covariance(self) -> None:
        rows = some_rows()
        found = self.components(rows)
        feature, codes = found._fine.features[0], found.binned.fine[0]
        u = feature.positions
        assert u is not None
        plain = np.exp(-0.5 * ((u[:-1, None] - u[:-1]) / 0.3) ** 2)
        w = feature.weights[:-1]
        centred = plain - (plain @ w)[:, None] - w @ plain + w @ plain @ w
        centred /= w @ np.diag(centred)
        phi = found.effects[0].factor[codes]
        assert_allclose(phi @ phi.T, centred[np.ix_(codes, codes)], atol=2e-3)

    def test_bag_means_equal_row_means(self) -> None:
        rows = some_rows()
        found, bag_of_row, sizes = self.components(rows), np.repeat([0, 1, 2], [10, 20, 30]), np.array([10, 20, 30])
        dense = self.dense(found, rows)
        weights = np.random.default_rng(1).uniform(size=60)
        for features, mean in zip(dense, found.bag_means(bag_of_row, sizes, weights), strict=True):
            expected = [(weights[:, None] * features)[bag_of_row == k].mean(axis=0) for k in range(3)]
            assert_allclose(mean, expected, atol=1e-5)
        rng = np.random.default_rng(2)
        coefficients = [rng.normal(size=(features.shape[1], 2)) for features in dense]
        expected_value = sum(features @ w for features, w in zip(dense, coefficients, strict=True))
        assert_allclose(found.value(coefficients), expected_value, atol=1e-4)
        other = some_rows(15, seed=3)
        expected_other = sum(f @ w for f, w in zip(self.dense(found, other), coefficients, strict=True))
        assert_allclose(found.value(coefficients, found.bin(other)), expected_other, atol=1e-4)


class TestProcess:
    def train(self, rows: int = 600, size: int = 20) -> tuple[BaggedRows, FloatArray]:
        table = some_rows(rows)
        probability = expit(2 * table.numeric[:, 0] + (table.categorical[:, 0] == 2))
        labels = (np.random.default_rng(5).random(rows) < probability).astype(float)
        return in_groups(table, size, labels), probability

    def test_posterior_mean_matches_dense_process(self) -> None:
        train, _ = self.train()
        drawn, found = (
            _fit_process(train, ProcessSettings(waves=30, draws=draws), np.random.default_rng(0)) for draws in (4, 0)
        )
        assert not np.isnan(drawn.shares()).any()
        # all rows at once: prior covariance of rows, observed through the matrix of bag averages
        t, evidence = found.hyperparameters, found.evidence
        components = found.components
        columns = components.columns(components.binned)
        phis = [e.factor[components.codes(e, components.binned)] for e in components.effects]
        phis += [joint(columns) for joint in components.joint]
        prior = sum(s * phi @ phi.T for s, phi in zip(evidence.scales(t), phis, strict=True))
        average = np.kron(np.eye(30), np.full((1, 20), 1 / 20))
        observed = average @ prior @ average.T + np.diag(evidence.diagonal(t))
        pi = train.prior[1]
        deviation = np.sqrt(pi * (1 - pi))
        residual = (train.proportions[:, 1] - pi) / deviation
        expected = pi + deviation * prior @ average.T @ np.linalg.solve(observed, residual)
        assert_allclose(found.shares()[:, 1], expected, atol=2e-4)
        assert_allclose(found.shares().sum(axis=1), 1, atol=1e-9)

    def test_pairs_are_screened_by_explained_variance(self) -> None:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(8000, 5))
        labels = (numbers[:, 1] * numbers[:, 3] > 0).astype(float)
        train = in_groups(rows_of(numbers.tolist()), 10, labels)
        found = _fit_process(train, ProcessSettings(waves=10, draws=0, most_pairs=1), np.random.default_rng(0))
        assert found.components.effects[-1].features == (1, 3)
        assert len(found.components.effects) == 6


class TestWaryPriors:
    """Bags that differ by effects of the bag, which a feature that hardly varies between bags seems to explain."""

    SETTINGS = ProcessSettings(waves=10, draws=0)

    def confounded(self, own: float) -> BaggedRows:
        """120 bags of 50 rows: x0 differs between bags and matters; 3 % of x1's variance lies between bags, and it
        matters nothing. `own`: standard deviation of what a bag has of its own."""
        rng = np.random.default_rng(0)
        bag = np.repeat(np.arange(120), 50)
        between = rng.normal(size=(120, 2)) * [0.8, np.sqrt(0.03)]
        numbers = between[bag] + rng.normal(size=(6000, 2)) * [0.6, np.sqrt(0.97)]
        cause = own * rng.normal(size=120)
        labels = (rng.random(6000) < expit(1.5 * numbers[:, 0] + cause[bag])).astype(float)
        return in_groups(rows_of(numbers.tolist()), 50, labels)

    def spread(self, process: FittedProcess) -> FloatArray:
        """[2] standard deviation of each feature's effect over the training rows."""
        return np.array([effect.importance for effect in process.effects()])

    def test_confounded_bags_shrink_weakly_identified_effects(self) -> None:
        train = self.confounded(own=1.5)
        plain, aware = (fit(train, self.SETTINGS, np.random.default_rng(0)) for fit in (_fit_process, FittedProcess.of))
        assert plain.confounded
        assert aware.confounded
        assert aware.unexplained == plain.unexplained
        ratio = self.spread(aware) / self.spread(plain)
        assert ratio[0] > 0.9
        assert ratio[1] < 0.5

    def test_prior_deviation_shrinks_with_between_bag_variance(self) -> None:
        train = self.confounded(own=1.5)
        plain, aware = (
            _fit_process(train, replace(self.SETTINGS, confounding_aware=aware), np.random.default_rng(0))
            for aware in (False, True)
        )
        lower = aware.evidence.prior.mean - plain.evidence.prior.mean
        means, weights = plain.evidence.means, train.sizes / train.sizes.sum()
        between = np.array([weights @ (means[c] ** 2).sum(axis=1) for c in (0, 1, 3, 4)])  # 2: the pair
        assert_allclose(lower[[0, 1, 3, 4]], 2 * np.log(between / between.max()))
        assert_array_equal(np.delete(lower, [0, 1, 3, 4]), 0)
        assert between[1] / between[0] == pytest.approx(0.05 / 0.66, rel=0.5)

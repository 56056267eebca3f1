"""Baggings that are made: clusters, a principal component, chosen proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llpbench.core.bags import BaggedRows, Rows
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS
from llpbench.core.tables import Table
from llpbench.data.baggings import standardised
from llpbench.data.splits import PARTS, assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_table
from llpbench.training.stamp import _separation, _spread

MADE = [("kmeans:clusters=10", None), ("principal-component", 16), ("dirichlet:alpha=2.0", 16)]


def bag(table: Table, name: str, *size: int, seed: int = 0, **options: Any) -> Any:
    return BAGGINGS.get(name)(table, np.arange(len(table)), *size, np.random.default_rng(seed), **options)


@pytest.mark.parametrize(("bagging", "size"), MADE)
def test_bags_repeat_with_seed_and_have_larger_spread_than_random_bags(bagging: str, size: int | None) -> None:
    table = toy_table(rows=2000)
    first = assign_bags(table, bagging, size, 0)
    assert first.manifest == assign_bags(table, bagging, size, 0).manifest
    assert first.manifest != assign_bags(table, bagging, size, 1).manifest
    for part in PARTS:
        bags = getattr(first, part)
        assert len(np.unique(bags[bags >= 0])) == (bags >= 0).sum()
    found = _spread(build_task(table, first).bags)
    assert found is not None
    assert found > 3


class TestStandardised:
    def test_numbers_and_frequent_categories_have_mean_0_and_std_1(self) -> None:
        table = toy_table(missing=0.1)
        found = standardised(table, np.arange(len(table)))
        assert found.shape == (400, 3 + 3 + 3)  # of two classes: their categories are three
        assert np.abs(found.mean(axis=0)).max() < 1e-12
        np.testing.assert_allclose(found.std(axis=0), 1.0)

    def test_rare_categories_and_constants_have_no_effect(self) -> None:
        table = toy_table(missing=0.0)
        table.categorical[:, 0] = 0
        table.categorical[:3, 0] = 1  # of 400
        table.numeric[:, 1] = 0.07  # no mean of equal numbers is exact
        found = standardised(table, np.arange(len(table)))
        assert found.shape == (400, 3 + 1 + 3)
        assert (found[:, 1] == 0).all()


class TestKmeans:
    def test_separated_clusters_become_bags(self) -> None:
        table = toy_table(missing=0.0)
        table.numeric[:] = 100.0 * np.repeat(np.arange(4), 100)[:, None]
        table.categorical[:] = 0
        bags = bag(table, "kmeans", clusters=4)
        assert sorted([{*map(int, row[row >= 0] // 100)} for row in bags], key=min) == [{0}, {1}, {2}, {3}]
        with pytest.raises(LLPBenchError, match=r"cannot make 401 clusters of 400 rows. Choose from 2 to 400"):
            bag(table, "kmeans", clusters=401)


class TestPrincipalComponent:
    def test_bags_are_slices_along_first_component(self) -> None:
        table, rng = toy_table(missing=0.0), np.random.default_rng(0)
        hidden = rng.normal(size=len(table))
        table.numeric[:] = hidden[:, None] + 0.01 * rng.normal(size=(len(table), 3))
        means = hidden[bag(table, "principal-component", 20)].mean(axis=1)
        assert (np.diff(means) > 0).all(), "in the order in which features grow"


class TestDirichlet:
    @pytest.mark.parametrize(("classes", "alpha"), [(2, 1e-9), (5, 1e-9), (5, 0.05), (2, 1.0), (5, 20.0)])
    def test_every_row_is_in_exactly_one_full_bag(self, classes: int, alpha: float) -> None:
        table = toy_table(rows=1200, classes=classes)
        bags = bag(table, "dirichlet", 16, alpha=alpha)
        assert bags.shape == (75, 16)
        assert np.sort(bags.ravel()).tolist() == list(range(1200))

    def test_proportions_have_variance_of_dirichlet(self) -> None:
        table = toy_table(rows=40_000)
        for alpha in (1.0, 10.0):
            proportions = table.row_labels[bag(table, "dirichlet", 100, alpha=alpha)].mean(axis=1)
            assert proportions.std() == pytest.approx(np.sqrt(0.25 / (alpha + 1)), rel=0.1)
            assert proportions.mean() == pytest.approx(0.5)

    def test_features_do_not_affect_dirichlet_bags(self) -> None:
        table = toy_table(rows=4000)
        table.numeric[:] = np.random.default_rng(0).normal(size=table.numeric.shape)
        table.categorical[:] = 0
        found = _separation(build_task(table, assign_bags(table, "dirichlet:alpha=0.5", 20, 0)).bags)
        assert found == pytest.approx(1 + 1 / 19, abs=0.01)


class TestDifferences:
    """`_spread` and `_separation`, against what they mean, computed pair by pair."""

    def test_random_bags_have_spread_and_separation_near_1(self) -> None:
        table = toy_table(rows=4000)
        bags = [build_task(table, assign_bags(table, "random", 20, seed)).bags for seed in range(10)]
        assert np.mean([_spread(each) for each in bags]) == pytest.approx(1.0, abs=0.1)
        assert np.mean([_separation(each) for each in bags]) == pytest.approx(1 + 1 / 19, abs=0.005)
        found = []
        for seed in range(20):
            table.numeric[:, 0] = 4000 ** np.random.default_rng(99 + seed).random(4000) // 40  # of any sizes
            found.append(_spread(build_task(table, assign_bags(table, "column:by=a", None, seed)).bags))
        assert np.mean([each or 0.0 for each in found]) == pytest.approx(1.0, abs=0.1)

    def test_spread_matches_hand_computation(self) -> None:
        """0 and 2 of 2 and 4 rows, of a third: 2 (2/9) + 4 (1/18) over (4/9) 6/5; a suppressed bag does not count."""
        rows = Rows(np.zeros((9, 0), np.float32), np.zeros((9, 0), np.int64), np.zeros((9, 0), bool))
        index = np.array([[0, 1, -1, -1], [2, 3, 4, 5], [6, 7, 8, -1]])
        bags = BaggedRows(rows, index, np.array([[2.0, 0.0], [2.0, 2.0], [np.nan, np.nan]]))
        assert _spread(bags) == pytest.approx((2 * 2 / 9 + 4 * 2 / 36) / (4 / 9 * 6 / 5))

    def test_separation_is_ratio_of_mean_pair_distances(self) -> None:
        table = toy_table(rows=200)
        bags = build_task(table, assign_bags(table, "column:by=d", None, 0)).bags
        codes = [np.eye(int(each.max()) + 1)[each] * np.sqrt(0.5) for each in bags.rows.categorical.T]
        rows = np.column_stack([bags.rows.numeric / np.sqrt(2), *codes]) * np.sqrt(2)
        members = [rows[index[index >= 0]] for index in bags.index]

        def apart(one: Any, other: Any) -> float:
            # a category that differs is a distance of 2 (two indicators) times 1/2, twice: as of numbers, squared
            return float(((one[:, None] - other[None]) ** 2).sum(axis=-1).mean())

        inside = np.mean([apart(each, each) for each in members])
        between = np.mean([apart(a, b) for i, a in enumerate(members) for b in members[:i]])
        assert _separation(bags) == pytest.approx(between / inside)

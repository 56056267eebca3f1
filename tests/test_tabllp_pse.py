"""TabLLP-PSE: constrained k-means is exact, keeps every bag's counts, and its objective never rises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from llpbench.bags import BaggedRows, FloatArray, Rows
from llpbench.methods.tabllp_pse import PSEParams, TabLLPPSE, assign, centroids_of, constrained_kmeans
from llpbench.toy import toy_task


def bagged(index: list[list[int]], counts: list[list[int]]) -> BaggedRows:
    rows = sum(position >= 0 for bag in index for position in bag)
    nothing = np.zeros((rows, 0))
    return BaggedRows(Rows(nothing, nothing.astype(np.int64), nothing > 0), np.array(index), np.array(counts))


def squared(points: FloatArray, centroids: FloatArray) -> FloatArray:
    return np.asarray(((points[:, None] - centroids) ** 2).sum(axis=-1))


@pytest.mark.parametrize(("counts", "expected"), [([3, 1], [0, 0, 0, 1]), ([2, 2], [0, 0, 1, 1])])
def test_a_bag_on_a_line(counts: list[int], expected: list[int]) -> None:
    points, centroids = np.array([[0.0], [1.0], [2.0], [10.0]]), np.array([[1.0], [10.0]])
    assert assign(squared(points, centroids), bagged([[0, 1, 2, 3]], [counts])).tolist() == expected


def random_problem(classes: int, unequal: bool) -> tuple[FloatArray, BaggedRows]:
    rng = np.random.default_rng(classes)
    train = toy_task(0, classes=classes, unequal=unequal).train
    return rng.normal(size=(len(train.rows.numeric), classes)), train


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_bag_gets_its_counts_and_no_feasible_labelling_costs_less(classes: int, unequal: bool) -> None:
    cost, train = random_problem(classes, unequal)
    labels, rng = assign(cost, train), np.random.default_rng(0)
    for bag, counts in zip(train.index, train.counts, strict=True):
        rows = bag[bag >= 0]
        assert np.bincount(labels[rows], minlength=classes).tolist() == counts.tolist()
        mine = cost[rows, labels[rows]].sum()
        for _ in range(100):
            other = rng.permutation(np.repeat(np.arange(classes), counts))
            assert mine <= cost[rows, other].sum() + 1e-9


def test_sorting_is_the_assignment_problem() -> None:
    cost, train = random_problem(2, unequal=True)
    labels = assign(cost, train)
    for bag, counts in zip(train.index, train.counts, strict=True):
        rows = bag[bag >= 0]
        matrix = cost[rows][:, np.repeat([0, 1], counts)]
        assert cost[rows, labels[rows]].sum() == pytest.approx(matrix[linear_sum_assignment(matrix)].sum())


@pytest.mark.parametrize("classes", [2, 3])
def test_the_objective_never_rises_and_labels_keep_every_count(classes: int) -> None:
    _, train = random_problem(classes, unequal=True)
    points = np.random.default_rng(1).normal(size=(len(train.rows.numeric), 5))
    labels, objective = constrained_kmeans(points, points[:classes], train)
    assert len(objective) > 2
    assert (np.diff(objective) <= 1e-9).all()
    for bag, counts in zip(train.index, train.counts, strict=True):
        assert np.bincount(labels[bag[bag >= 0]], minlength=classes).tolist() == counts.tolist()
    final = squared(points, centroids_of(points, np.eye(classes)[labels]))
    moved = np.abs((points**2).sum() + objective[-1] - (points**2).sum() - final[np.arange(len(points)), labels].sum())
    assert moved < 1e-6 * abs(objective[-1])


def test_centroids_of_a_class_without_weight_are_the_mean() -> None:
    points = np.array([[0.0], [2.0], [4.0]])
    weights = np.array([[0.5, 0.0], [0.5, 0.0], [1.0, 0.0]])
    assert centroids_of(points, weights).tolist() == [[2.5], [2.0]]


@pytest.mark.parametrize(("refresh", "calls"), [(None, [0]), (10, [0, 10]), (1, list(range(12)))])
def test_labels_are_made_anew_every_few_epochs(refresh: int | None, calls: list[int]) -> None:
    stages = TabLLPPSE(PSEParams(refresh=refresh, second_rate=0.1)).stages
    assert [stage.unit for stage in stages] == ["bags", "rows"]
    assert stages[1].rate == 0.1
    again = stages[1].refresh
    assert [epoch for epoch in range(12) if epoch == 0 or (again and epoch % again == 0)] == calls

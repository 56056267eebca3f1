"""TabLLP-PSE: which cluster is which class, and labels that keep every bag's counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bagged import in_bags, rows_of
from scipy.optimize import linear_sum_assignment
from small import moment, toy_task
from torch import nn

from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.model import Network, NoEncoder
from llpbench.methods.tabllp_pse import TabLLPPSE, _centroids_of, _constrained_kmeans, _match_counts, _PSEParams


def squared(points: FloatArray, centroids: FloatArray) -> FloatArray:
    return np.asarray(((points[:, None] - centroids) ** 2).sum(axis=-1))


def random_problem(classes: int) -> tuple[FloatArray, BaggedRows]:
    train = toy_task(0, classes=classes, unequal=True).train
    return np.random.default_rng(classes).normal(size=(len(train.rows.numeric), classes)), train


@pytest.mark.parametrize("classes", [2, 3])
def test_objective_never_increases_and_labels_match_counts(classes: int) -> None:
    _, train = random_problem(classes)
    points = np.random.default_rng(1).normal(size=(len(train.rows.numeric), 5))
    labels, objective = _constrained_kmeans(points, points[:classes], train)
    assert len(objective) > 2
    assert (np.diff(objective) <= 1e-9).all()
    for bag, counts in zip(train.index, train.counts, strict=True):
        assert np.bincount(labels[bag[bag >= 0]], minlength=classes).tolist() == counts.tolist()
    final = squared(points, _centroids_of(points, np.eye(classes)[labels]))
    assert objective[-1] == pytest.approx(final[np.arange(len(points)), labels].sum())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_labels_match_counts_at_least_cost_and_suppressed_bags_get_cheapest(classes: int, noise: float) -> None:
    cost, train = random_problem(classes)
    counts = train.counts + np.random.default_rng(0).normal(0, noise, size=train.counts.shape)
    counts[[1, 4]] = np.nan
    some = replace(train, counts=counts, noise=noise)
    labels = _match_counts(cost, some)
    for number, bag in enumerate(train.index):
        rows = bag[bag >= 0]
        if number in (1, 4):
            assert labels[rows].tolist() == cost[rows].argmin(axis=1).tolist()
            continue
        held = some.whole_counts[number] if noise else train.counts[number].astype(int)
        assert np.bincount(labels[rows], minlength=classes).tolist() == held.tolist()
        matrix = cost[rows][:, np.repeat(np.arange(classes), held)]
        assert cost[rows, labels[rows]].sum() == pytest.approx(matrix[linear_sum_assignment(matrix)].sum())


class Fixed:
    """A `method.Member` with given row vectors and predictions."""

    def __init__(self, train: BaggedRows, z: FloatArray, positive: list[float]) -> None:
        self.network, self.rng = Network(NoEncoder(), nn.Identity()), np.random.default_rng(0)
        self.train, self.z, self.positive = train, z, np.array(positive)

    def encode(self) -> FloatArray:
        return self.z

    def proba(self) -> FloatArray:
        return np.stack([1 - self.positive, self.positive], axis=1)


@pytest.mark.parametrize(
    ("space", "positive", "expected"),
    [
        ("z", [0.9, 0.1, 0.8, 0.2], [1, 0, 1, 0]),
        ("z", [0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1]),  # the same clusters, of the other class
        ("z", [0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0]),
        ("proba", [0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0]),
    ],
)
def test_pseudo_labels_follow_row_order_and_keep_class(space: str, positive: list[float], expected: list[int]) -> None:
    method = TabLLPPSE(_PSEParams(space=space))
    z = np.array([[10.0], [0.0], [9.0], [1.0]])
    member = Fixed(in_bags(rows_of([[]] * 4), [[3, 1, 0, 2]], [[2, 2]]), z, positive)
    targets = method.prepare(member, moment("pseudo-labels"))
    assert targets is not None
    assert targets.tolist() == np.eye(2)[expected].tolist()
    assert method.prepare(member, moment("proportions")) is None

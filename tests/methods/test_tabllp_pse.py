"""TabLLP-PSE: constrained k-means is exact, keeps every bag's counts, and its objective never rises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from scipy.optimize import linear_sum_assignment
from small import assert_same, moment, together

from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.method import Member, Now
from llpbench.core.model import Network, NoEncoder
from llpbench.data.toy import toy_task
from llpbench.methods.tabllp_pse import PSEParams, TabLLPPSE, centroids_of, constrained_kmeans, match_counts

NOTHING = rows_of([[]] * 4)


def squared(points: FloatArray, centroids: FloatArray) -> FloatArray:
    return np.asarray(((points[:, None] - centroids) ** 2).sum(axis=-1))


def random_problem(classes: int) -> tuple[FloatArray, BaggedRows]:
    train = toy_task(0, classes=classes, unequal=True).train
    return np.random.default_rng(classes).normal(size=(len(train.rows.numeric), classes)), train


@pytest.mark.parametrize("classes", [2, 3])
def test_the_objective_never_rises_and_labels_keep_every_count(classes: int) -> None:
    _, train = random_problem(classes)
    points = np.random.default_rng(1).normal(size=(len(train.rows.numeric), 5))
    labels, objective = constrained_kmeans(points, points[:classes], train)
    assert len(objective) > 2
    assert (np.diff(objective) <= 1e-9).all()
    for bag, counts in zip(train.index, train.counts, strict=True):
        assert np.bincount(labels[bag[bag >= 0]], minlength=classes).tolist() == counts.tolist()
    final = squared(points, centroids_of(points, np.eye(classes)[labels]))
    assert objective[-1] == pytest.approx(final[np.arange(len(points)), labels].sum())


@pytest.mark.parametrize(("refresh", "epochs"), [(None, [0]), (5, [0, 5]), (1, list(range(7)))])
def test_labels_are_refreshed_every_few_epochs(refresh: int | None, epochs: list[int]) -> None:
    seen: list[float] = []

    class Watched(TabLLPPSE):
        def prepare(self, member: Member, now: Now) -> FloatArray | None:
            if now.stage == "pseudo-labels":
                seen.append(float(now.epoch))
            return super().prepare(member, now)

    method = Watched(PSEParams(hidden=8, learning_rate=0.01, refresh=refresh, second_rate=0.1))
    together(method, {0: toy_task(0)}, epochs=7, patience=7).train()
    assert seen == epochs * 2  # once for each validation regime
    assert [(stage.unit, stage.rate) for stage in method.stages] == [("bags", 1.0), ("rows", 0.1)]


class Fixed:
    """A `method.Member` with given row vectors and predictions."""

    def __init__(self, train: BaggedRows, z: list[float], positive: list[float]) -> None:
        self.network, self.rng = Network(NoEncoder(), torch.nn.Identity()), np.random.default_rng(0)
        self.train, self.z = train, np.array(z)[:, None]
        self.p = np.array([[1 - p, p] for p in positive])

    def encode(self) -> FloatArray:
        return self.z

    def proba(self) -> FloatArray:
        return self.p


@pytest.mark.parametrize(
    ("space", "positive", "expected"),
    [
        ("z", [0.9, 0.1, 0.8, 0.2], [1, 0, 1, 0]),
        ("z", [0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1]),  # the same clusters, of the other class
        ("z", [0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0]),
        ("proba", [0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0]),
    ],
)
def test_pseudo_labels_stand_in_the_order_of_rows_and_keep_their_class(
    space: str, positive: list[float], expected: list[int]
) -> None:
    method = TabLLPPSE(PSEParams(space=space))
    member = Fixed(in_bags(NOTHING, [[3, 1, 0, 2]], [[2, 2]]), [10.0, 0.0, 9.0, 1.0], positive)
    targets = method.prepare(member, moment("pseudo-labels"))
    assert targets is not None
    assert targets.tolist() == np.eye(2)[expected].tolist()
    assert method.prepare(member, moment("proportions")) is None


def test_a_class_without_rows_does_no_harm() -> None:
    points = np.array([[0.0], [1.0], [2.0], [10.0]])
    with np.errstate(all="raise"):
        centroids = centroids_of(points, np.array([[0.8, 0.2, 0.0]] * 3 + [[0.1, 0.9, 0.0]]))
        labels, objective = constrained_kmeans(points, centroids, in_bags(NOTHING, [[0, 1, 2, 3]], [[3, 1, 0]]))
    assert labels.tolist() == [0, 0, 0, 1]
    assert objective[-1] == pytest.approx(2.0)
    assert centroids[0] == pytest.approx((0.8 * 3 + 0.1 * 10) / 2.5)
    assert centroids[2] == pytest.approx(points.mean(axis=0))


@pytest.mark.parametrize("classes", [2, 3])
def test_members_together_are_members_alone_and_their_labels_match_every_bag(classes: int) -> None:
    """Bags of different sizes, labels refreshed every epoch; equal up to rounding."""
    method = TabLLPPSE(PSEParams(hidden=16, learning_rate=0.01, refresh=1))
    tasks = {seed: toy_task(seed, classes=classes, unequal=True) for seed in range(2)}
    population = together(method, tasks, epochs=2)
    both = population.train()
    for seed, task in tasks.items():
        targets = population.state.targets.values[seed].numpy()
        for bag, counts in zip(task.train.index, task.train.counts, strict=True):
            assert targets[bag[bag >= 0]].sum(axis=0).tolist() == counts.tolist()
    (alone,) = together(method, {1: tasks[1]}, epochs=2).train()
    assert_same(alone, both[1])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_labels_match_whole_counts_at_the_least_cost_and_suppressed_bags_get_their_cheapest(
    classes: int, noise: float
) -> None:
    cost, train = random_problem(classes)
    counts = train.counts + np.random.default_rng(0).normal(0, noise, size=train.counts.shape)
    counts[[1, 4]] = np.nan
    some = replace(train, counts=counts, noise=noise)
    labels = match_counts(cost, some)
    for number, bag in enumerate(train.index):
        rows = bag[bag >= 0]
        if number in (1, 4):
            assert labels[rows].tolist() == cost[rows].argmin(axis=1).tolist()
            continue
        held = some.whole_counts[number] if noise else train.counts[number].astype(int)
        assert np.bincount(labels[rows], minlength=classes).tolist() == held.tolist()
        matrix = cost[rows][:, np.repeat(np.arange(classes), held)]
        assert cost[rows, labels[rows]].sum() == pytest.approx(matrix[linear_sum_assignment(matrix)].sum())

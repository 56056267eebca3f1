"""TabLLP-DEC and TabLLP-PSE: clusters, which of them is which class, and labels that keep every bag's counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from scipy.optimize import linear_sum_assignment
from small import bags_of, mlp, moment
from torch import nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.model import Model, Network, NoEncoder
from llpbench.data.tasks import build_task
from llpbench.data.toy import pure_bags, toy_task
from llpbench.methods.tabllp_dec import TabLLPDEC, _clusters_of_classes, _DECParams
from llpbench.methods.tabllp_pse import TabLLPPSE, _centroids_of, _constrained_kmeans, _match_counts, _PSEParams

SCHEMA = toy_task(0).schema


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shift", [0, 1])
def test_clusters_get_class_with_matching_proportions(classes: int, shift: int) -> None:
    table, assignment = pure_bags(classes)
    train = build_task(table, assignment).train
    labels = np.empty(len(train.rows.numeric), dtype=np.int64)
    for bag, counts in zip(train.index, train.counts, strict=True):
        labels[bag] = (counts.argmax() + shift) % classes
    assert _clusters_of_classes(labels, train).tolist() == [(c + shift) % classes for c in range(classes)]


@pytest.mark.parametrize("prior_corrected", [False, True])
@pytest.mark.parametrize("frequencies", ["epoch", "step"])
def test_loss_matches_definition(frequencies: str, prior_corrected: bool) -> None:
    """Its value, and its gradient, in which the target is constant."""
    task = toy_task(0, unequal=True)
    prior = torch.tensor([0.8, 0.2])
    params = _DECParams(hidden=16, gamma=2.0, frequencies=frequencies, prior_corrected=prior_corrected)
    method = TabLLPDEC(params)
    network = method.build(mlp(task), replace(task.schema, prior=tuple(prior.tolist())))
    network.clusters.size.copy_(torch.tensor([0.3, 0.7]))
    bags, model = bags_of(task.train, 0, 1), Model(network)
    q = method.log_proba(model, bags).exp()
    rows = q[bags.mask]
    size = torch.tensor([0.3, 0.7]) if frequencies == "epoch" else rows.mean(dim=0)
    weight = rows**2 / size * (prior if prior_corrected else 1.0)
    target = (weight / weight.sum(dim=1, keepdim=True)).detach()
    expected = (target * (target / rows).log()).sum(dim=1).mean() + 2.0 * proportion_loss(q.log(), bags)
    found = method.loss(Model(network), bags, moment("clustering"))
    assert torch.allclose(found, expected, atol=1e-5)
    (through,) = torch.autograd.grad(found, [network.clusters.centroids])
    (reference,) = torch.autograd.grad(expected, [network.clusters.centroids])
    assert bool((through != 0).any())
    assert torch.allclose(through, reference, atol=1e-5)


class Fixed:
    """A `method.Member` with given row vectors, whose predictions are given or follow from its clusters."""

    def __init__(
        self, train: BaggedRows, z: FloatArray, positive: Sequence[float] = (), **parts: torch.nn.Module
    ) -> None:
        self.network, self.rng = Network(NoEncoder(), nn.Identity()).add(**parts), np.random.default_rng(0)
        self.train, self.z, self.positive = train, z, np.array(positive)

    def encode(self) -> FloatArray:
        return self.z

    def proba(self) -> FloatArray:
        if len(self.positive):
            return np.stack([1 - self.positive, self.positive], axis=1)
        return np.asarray(self.network.clusters(torch.from_numpy(self.z)).detach().exp())


NOTHING = rows_of([[]] * 4)


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
    member = Fixed(in_bags(NOTHING, [[3, 1, 0, 2]], [[2, 2]]), z, positive)
    targets = method.prepare(member, moment("pseudo-labels"))
    assert targets is not None
    assert targets.tolist() == np.eye(2)[expected].tolist()
    assert method.prepare(member, moment("proportions")) is None


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

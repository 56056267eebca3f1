"""TabLLP-DEC: soft assignments, targets, and which cluster is which class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from small import bags_of, mlp, moment, stream, together

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.model import Model, Network, NoEncoder
from llpbench.data.tasks import build_task
from llpbench.data.toy import pure_bags, toy_task
from llpbench.methods.tabllp_dec import Clusters, DECParams, TabLLPDEC, class_centroids, clusters_of_classes
from llpbench.training.stage import StageRun

SCHEMA = toy_task(0).schema


def test_soft_assignments() -> None:
    clusters = Clusters(1, SCHEMA)
    with torch.no_grad():
        clusters.centroids.copy_(torch.tensor([[0.0], [1.0]]))
    assert clusters(torch.tensor([0.0])).exp().tolist() == pytest.approx([2 / 3, 1 / 3])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shift", [0, 1])
def test_clusters_get_the_classes_whose_proportions_they_have(classes: int, shift: int) -> None:
    table, assignment = pure_bags(classes)
    train = build_task(table, assignment).train
    labels = np.empty(len(train.rows.numeric), dtype=np.int64)
    for bag, counts in zip(train.index, train.counts, strict=True):
        labels[bag] = (counts.argmax() + shift) % classes
    assert clusters_of_classes(labels, train).tolist() == [(c + shift) % classes for c in range(classes)]


@pytest.mark.parametrize("seed", range(4))
def test_centroids_keep_the_order_of_classes_whatever_the_order_of_clusters(seed: int) -> None:
    table, assignment = pure_bags(3)
    train = build_task(table, assignment).train
    centroids = class_centroids(train.rows.numeric, train, np.random.default_rng(seed))
    expected = np.stack(
        [train.rows.numeric[train.index[train.counts[:, c] > 0].ravel()].mean(axis=0) for c in range(3)]
    )
    assert np.abs(centroids - expected).max() < 0.1


@pytest.mark.parametrize("prior_corrected", [False, True])
@pytest.mark.parametrize("frequencies", ["epoch", "step"])
def test_the_loss_against_its_definition(frequencies: str, prior_corrected: bool) -> None:
    """Its value, and its gradient, in which the target is constant."""
    task = toy_task(0, unequal=True)
    prior = torch.tensor([0.8, 0.2])
    params = DECParams(hidden=16, gamma=2.0, frequencies=frequencies, prior_corrected=prior_corrected)
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
    """A `method.Member` whose row vectors are given and whose predictions follow from its clusters."""

    def __init__(self, network: Network, train: BaggedRows, z: FloatArray) -> None:
        self.network, self.train, self.z = network, train, z
        self.rng = np.random.default_rng(0)

    def encode(self) -> FloatArray:
        return self.z

    def proba(self) -> FloatArray:
        return np.asarray(self.network.clusters(torch.from_numpy(self.z)).detach().exp())


def test_centroids_are_found_once_and_sizes_every_epoch() -> None:
    table, assignment = pure_bags(2)
    task = build_task(table, assignment)
    train, z = task.train, np.asarray(task.train.rows.numeric, dtype=np.float32)
    method = TabLLPDEC(DECParams(hidden=16))
    clusters = Clusters(z.shape[1], task.schema)
    network = Network(NoEncoder(), torch.nn.Identity()).add(clusters=clusters)
    untouched = clusters.centroids.detach().clone()

    method.prepare(Fixed(network, train, z), moment("warm-up"))
    assert torch.equal(clusters.centroids, untouched)
    assert clusters.size.tolist() == [0.5, 0.5]

    method.prepare(Fixed(network, train, z), moment("clustering"))
    found = torch.from_numpy(class_centroids(z, train, np.random.default_rng(0)))
    assert torch.allclose(clusters.centroids, found)

    with torch.no_grad():
        clusters.centroids[1] = 100.0  # all rows belong to the other cluster now
    moved = clusters.centroids.detach().clone()
    method.prepare(Fixed(network, train, z), moment("clustering", epoch=1))
    assert torch.equal(clusters.centroids, moved)
    assert torch.allclose(clusters.size, clusters(torch.from_numpy(z)).exp().mean(dim=0), atol=1e-5)
    assert clusters.size[0] > 0.9


def test_a_population_prepares_at_the_start_of_a_stage_and_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    population = together(TabLLPDEC(DECParams(hidden=16, learning_rate=0.01)), {0: toy_task(0)}, epochs=3)
    before = population.stack.theta.clone()
    columns = population.stack.columns(["clusters."])
    sizes = []
    prepare = StageRun.prepare

    def watched(run: StageRun, epoch: int) -> None:
        prepare(run, epoch)
        sizes.append((run.stage.name, run.stage.judged, epoch, run.state.buffers["clusters.size"][0].clone()))

    monkeypatch.setattr(StageRun, "prepare", watched)
    (outcome,) = population.train()
    clustering = [("clustering", True, epoch) for epoch in range(3)]
    assert [of_epoch for *of_epoch, _ in sizes] == [*map(list, [("warm-up", False, 0), *clustering])]
    assert not torch.equal(sizes[1][-1], sizes[2][-1])
    assert not torch.equal(outcome.selected["auc"].weights[columns], before[0][columns])
    assert outcome.epochs == 13


@pytest.mark.parametrize("warm_up", ["denoise", "dllp"])
def test_a_warm_up_has_its_own_loss(warm_up: str) -> None:
    task = toy_task(0, unequal=True)
    method = TabLLPDEC(DECParams(hidden=16, warm_up=warm_up))
    network = method.build(mlp(task), task.schema)
    loss = method.loss(Model(network, stream()), bags_of(task.train, 0, 1), moment("warm-up"))
    assert torch.autograd.grad(loss, [network.clusters.centroids], allow_unused=True) == (None,)


def test_suppressed_bags_have_no_say_in_which_cluster_is_which_class() -> None:
    """The clusters match the one known bag; three bags with suppressed counts would swap them."""
    labels = np.array([0] * 6 + [1] * 4 + [1] * 30)
    counts = [[9.0, 1.0], *[[np.nan] * 2] * 3]
    train = in_bags(rows_of([[0.0]] * 40), np.arange(40).reshape(4, 10).tolist(), counts)
    assert clusters_of_classes(labels, train).tolist() == [0, 1]
    told = replace(train, counts=np.array([[9.0, 1.0]] * 4))
    assert clusters_of_classes(labels, told).tolist() == [1, 0]


def test_noisy_counts_count_by_their_proportions() -> None:
    train = build_task(*pure_bags(2)).train
    labels = np.empty(len(train.rows.numeric), dtype=np.int64)
    for bag, counts in zip(train.index, train.counts, strict=True):
        labels[bag] = counts.argmax()
    noisy = replace(train, counts=train.counts + np.random.default_rng(0).normal(0, 2, train.counts.shape), noise=2.0)
    assert (noisy.counts < 0).any()
    assert clusters_of_classes(labels, noisy).tolist() == [0, 1]
    assert clusters_of_classes(1 - labels, noisy).tolist() == [1, 0]

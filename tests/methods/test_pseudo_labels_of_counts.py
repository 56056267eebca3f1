"""PLOT, AHIL and the labels that they train on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from small import make_bags, mlp, moment, no_features, some_bags, stream

from llpbench.blocks.losses import proportion_loss
from llpbench.blocks.relabelling import in_known_bags, matching_labels
from llpbench.core.model import Model
from llpbench.data.toy import toy_task
from llpbench.methods.ahil import AHIL, AHILParams, bag_weights, row_weights
from llpbench.methods.llp_plot import PLOT, PLOTParams, confident_loss, folded_arcsine, symmetric_loss


def test_symmetric_loss_of_a_row() -> None:
    log_proba, label = torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[1.0, 0.0]])
    assert float(symmetric_loss(log_proba, label, 0.0)) == pytest.approx(0.223144, abs=1e-5)
    assert float(symmetric_loss(log_proba, label, 1.0)) == pytest.approx(1.023144, abs=1e-5)


def test_a_target_of_nothing_has_no_gradient() -> None:
    logits = torch.tensor([[0.3, -1.0]], requires_grad=True)
    loss = symmetric_loss(logits.log_softmax(dim=-1), torch.zeros(1, 2), 1.0).sum()
    assert float(torch.autograd.grad(loss, [logits])[0].abs().max()) < 1e-6


def test_shares_of_mixtures_have_the_moments_of_a_folded_beta() -> None:
    uniform = (torch.arange(200_000) + 0.5) / 200_000
    share = folded_arcsine(uniform)
    assert float(share.min()) >= 0.5
    assert float(share.mean()) == pytest.approx(0.5 + 1 / math.pi, abs=1e-4)  # mean of the larger part
    assert float((share * (1 - share)).mean()) == pytest.approx(1 / 8, abs=1e-4)  # as of Beta(1/2, 1/2) itself


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_match_whole_counts_and_suppressed_bags_have_none(classes: int) -> None:
    rng = np.random.default_rng(0)
    counts = np.array([[2.0, 3.0, 1.0], [1.4, 2.6, 0.0], [np.nan] * 3])[:, :classes]
    train = in_bags(rows_of([[0.0]] * 13), [list(range(6)), [6, 7, 8, 9], [10, 11, 12]], counts.tolist())
    proba = rng.dirichlet(np.ones(classes), 13)
    labels = matching_labels(proba, train)
    for bag in (0, 1):
        rows = train.index[bag][train.index[bag] >= 0]
        assert labels[rows].sum(axis=0).tolist() == train.whole_counts[bag].tolist()
    assert labels[10:].tolist() == np.zeros((3, classes)).tolist()
    assert in_known_bags(proba, train)[:10].tolist() == proba[:10].tolist()
    assert in_known_bags(proba, train)[10:].sum() == 0


def test_labels_of_a_step_count_only_where_they_are_sure() -> None:
    proba = torch.tensor([[[0.97, 0.03], [0.3, 0.7], [0.6, 0.4]]])
    bags = make_bags(no_features(1, 3), torch.ones(1, 3, dtype=torch.bool), [[2 / 3, 1 / 3]])
    found = confident_loss(proba.log(), bags, 0.65)
    assert float(found) == pytest.approx(-(math.log(0.97) + math.log(0.7)) / 3, abs=1e-5)


def test_stages_of_variants() -> None:
    names = {
        variant: [stage.name for stage in PLOT(PLOTParams(variant=variant)).stages]
        for variant in ("plot", "distil", "online")
    }
    assert names == {
        "plot": ["proportions", "labels"],
        "distil": ["proportions", "distil", "labels"],
        "online": ["proportions"],
    }


def test_weights_of_four_rows() -> None:
    p = torch.tensor([0.9, 0.9, 0.1, 0.1])
    log_proba = torch.stack([1 - p, p], dim=-1)[None].log()
    bags = make_bags(no_features(1, 4), torch.ones(1, 4, dtype=torch.bool), [[0.5, 0.5]])
    assert bag_weights(log_proba, bags, 1.0).flatten().tolist() == pytest.approx([0.899713] * 4, abs=1e-5)
    assert row_weights(log_proba, 1.0).flatten().tolist() == pytest.approx([0.899713] * 4, abs=1e-5)


def test_padding_has_no_part_in_weights_and_absent_classes_none() -> None:
    p = torch.tensor([0.9, 0.9, 0.1, 0.1, 0.7, 0.2])
    log_proba = torch.stack([1 - p, p], dim=-1)[None].log()
    bags = make_bags(no_features(1, 6), torch.tensor([[True] * 4 + [False] * 2]), [[0.5, 0.5]])
    assert bag_weights(log_proba, bags, 1.0)[0, :4].tolist() == pytest.approx([0.899713] * 4, abs=1e-5)
    none = bags._replace(proportions=torch.tensor([[1.0, 0.0]]))
    assert bag_weights(log_proba, none, 1.0)[0, :4].tolist()[:2] == [0.0, 0.0]


def test_ahil_weighs_the_strong_views_cross_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a strong view of the row's own predictions turned round."""
    task, bags = toy_task(0, unequal=True), some_bags(unequal=True)
    method = AHIL(AHILParams(hidden=8, weight=0.7, row_scale=2.0, bag_scale=3.0))
    network: Any = method.build(mlp(task), task.schema)
    network.encoder.dropout = 0.0
    monkeypatch.setattr("llpbench.methods.ahil.mixed_view", lambda model, bags, *_: model.encode(bags))
    model = Model(network, stream())
    weak = model.log_proba(bags).detach()
    weights = row_weights(weak, 2.0) * bag_weights(weak, bags, 3.0)
    assert float(weights.min()) > 0
    assert float(weights.max() - weights.min()) > 1e-4
    expected = proportion_loss(weak, bags) + 0.7 * (-weights * weak.amax(dim=-1))[bags.mask].mean()
    assert torch.allclose(method.loss(model, bags, moment("labels")), expected, atol=1e-5)

"""Transport of predictions to counts, hard labels, and the methods made of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit
from small import bags_of, make_bags, mlp, moment, no_features, some_bags, stream

from llpbench.blocks.losses import proportion_loss
from llpbench.blocks.transport import counted_labels, transported
from llpbench.core.bags import Bags
from llpbench.core.model import Model
from llpbench.data.toy import toy_task
from llpbench.methods.rot import ROT, ROTParams, row_targets_loss

TWO = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log()
ONE_EACH = make_bags(no_features(1, 2), torch.ones(1, 2, dtype=torch.bool), [[0.5, 0.5]])


@pytest.mark.parametrize("entropy", [1.0, 0.2, 0.05])
def test_the_plan_of_two_rows(entropy: float) -> None:
    found = transported(TWO, ONE_EACH, entropy, rounds=200)[0, 0, 0]
    expected = float(expit((logit(0.9) - logit(0.6)) / (2 * entropy)))
    assert float(found) == pytest.approx(expected, abs=1e-5)
    assert expected == pytest.approx({1.0: 0.710102, 0.2: 0.988787, 0.05: 1 - 1.7e-8}[entropy], abs=1e-6)


def test_the_losses_of_two_rows() -> None:
    bag, rows = proportion_loss(TWO, ONE_EACH), row_targets_loss(TWO, TWO, ONE_EACH, "soft", 1.0)
    assert float(bag) == pytest.approx(0.143841, abs=1e-5)
    assert float(rows) == pytest.approx(0.770539, abs=1e-5)
    assert float(0.6 * bag + 0.4 * rows) == pytest.approx(0.394520, abs=1e-5)


def unequal(classes: int) -> tuple[torch.Tensor, Bags]:
    """Random predictions of bags of 7 and 4 rows; of three classes each bag lacks one."""
    torch.manual_seed(0)
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    counts = torch.tensor([[3.0, 4.0, 0.0], [0.0, 1.0, 3.0]])[:, :classes]
    counts = torch.tensor([[3.0, 4.0], [1.0, 3.0]]) if classes == 2 else counts
    bags = make_bags(no_features(2, 7), mask, (counts / mask.sum(dim=1, keepdim=True)).tolist())
    return torch.randn(2, 7, classes).log_softmax(dim=-1), bags


@pytest.mark.parametrize("classes", [2, 3])
def test_plans_add_up_to_rows_and_counts(classes: int) -> None:
    log_proba, bags = unequal(classes)
    plan = transported(log_proba, bags, 0.5, rounds=300)
    assert torch.allclose(plan.sum(dim=1), bags.counts, atol=1e-4)
    assert torch.allclose(plan.sum(dim=2), bags.mask.float(), atol=1e-5)
    assert float(plan.sum(dim=1)[bags.counts == 0].sum()) == 0.0


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_match_counts_at_the_least_cost(classes: int) -> None:
    log_proba, bags = unequal(classes)
    labels = counted_labels(log_proba, bags)
    assert torch.equal(labels.sum(dim=1), bags.counts)
    assert torch.equal(labels.sum(dim=2), bags.mask.float())
    for k in range(2):
        size = int(bags.mask[k].sum())
        places = np.repeat(np.arange(classes), bags.counts[k].int().tolist())
        cost = log_proba[k, :size].numpy()[:, places]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        assert float((labels[k, :size] * log_proba[k, :size]).sum()) == pytest.approx(float(best), abs=1e-4)


def test_ties_get_as_many_labels_as_were_counted() -> None:
    log_proba = torch.full((1, 4, 2), math.log(0.5))
    bags = make_bags(no_features(1, 4), torch.ones(1, 4, dtype=torch.bool), [[0.75, 0.25]])
    assert counted_labels(log_proba, bags)[0, :, 1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_halves_of_noisy_counts_go_as_in_whole_counts() -> None:
    task = toy_task(0)
    counts = np.array([[2.5, 1.5], [1.2, 2.8]])
    train = replace(task.train, index=task.train.index[:2, :4], counts=counts)
    bags = bags_of(train, 0, 1)
    labels = counted_labels(torch.randn(2, 4, 2).log_softmax(dim=-1), bags)
    assert labels.sum(dim=1).tolist() == train.whole_counts.tolist()


def test_rows_are_drawn_to_their_targets() -> None:
    log_proba = TWO.clone().requires_grad_()
    (found,) = torch.autograd.grad(row_targets_loss(log_proba, TWO, ONE_EACH, "soft", 1.0), [log_proba])
    assert torch.allclose(found, -transported(TWO, ONE_EACH, 1.0) / 2)


def test_dropout_has_no_part_in_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    task, bags = toy_task(0), some_bags()
    method = ROT(ROTParams(hidden=8))
    network = method.build(mlp(task), task.schema)
    seen: list[torch.Tensor] = []

    def watched(calm: torch.Tensor, *_: object) -> torch.Tensor:
        seen.append(calm)
        return calm.exp()

    monkeypatch.setattr("llpbench.methods.rot.transported", watched)
    method.loss(Model(network, stream()), bags, moment("transport"))
    assert torch.equal(seen[0], Model(network).log_proba(bags))
    assert not torch.allclose(seen[0], Model(network, stream()).log_proba(bags))
    assert not seen[0].requires_grad

"""Known answers of the bag losses (spec A1 and G)."""

from __future__ import annotations

import math

import pytest
import torch

from llpbench.bags import Bags, Rows
from llpbench.losses import bag_log_proba, proportion_loss


def bags(mask: list[list[bool]], proportions: list[list[float]]) -> Bags:
    """Bags of which a loss sees only mask and proportions."""
    shape = (len(mask), len(mask[0]))
    rows = Rows(torch.zeros(*shape, 1), torch.zeros(*shape, 0).long(), torch.zeros(*shape, 1, dtype=torch.bool))
    target = torch.tensor(proportions)
    return Bags(rows, torch.tensor(mask), target.long(), target)


def test_kl_of_quarters_and_halves() -> None:
    log_proba = torch.log(torch.tensor([[[0.5, 0.5], [0.5, 0.5]]]))
    assert float(proportion_loss(log_proba, bags([[True, True]], [[0.25, 0.75]]))) == pytest.approx(0.130812, abs=1e-6)


def test_it_is_the_log_of_the_mean_not_the_mean_of_the_logs() -> None:
    log_proba = torch.log(torch.tensor([[[0.9, 0.1], [0.1, 0.9]]]))
    two = bags([[True, True]], [[0.5, 0.5]])
    assert float(proportion_loss(log_proba, two)) == pytest.approx(0, abs=1e-6)
    single = bags([[True], [True]], [[0.5, 0.5], [0.5, 0.5]])
    mean_log = proportion_loss(log_proba[0][:, None], single) + math.log(2)  # cross-entropy = KL + entropy
    assert float(mean_log) == pytest.approx(1.203973, abs=1e-6)


def test_no_gradient_where_the_proportions_agree() -> None:
    logits = torch.log(torch.tensor([[[0.9, 0.1], [0.1, 0.9]]])).requires_grad_()
    proportion_loss(logits.log_softmax(-1), bags([[True, True]], [[0.5, 0.5]])).backward()
    assert logits.grad is not None
    assert float(logits.grad.abs().max()) < 1e-7


def test_gradient_of_a_bag_of_identical_rows() -> None:
    logits = torch.tensor([[[0.3, -0.2]] * 4], requires_grad=True)
    proportion_loss(logits.log_softmax(-1), bags([[True] * 4], [[0.25, 0.75]])).backward()
    expected = (torch.tensor([0.3, -0.2]).softmax(-1) - torch.tensor([0.25, 0.75])) / 4
    assert logits.grad is not None
    assert torch.allclose(logits.grad, expected.expand(1, 4, 2), atol=1e-6)


def test_absent_classes_and_extreme_predictions_stay_finite() -> None:
    logits = torch.tensor([[[60.0, -60.0], [60.0, -60.0]]], requires_grad=True)
    loss = proportion_loss(logits.log_softmax(-1), bags([[True, True]], [[0.0, 1.0]]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(120, rel=1e-5)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_padding_is_as_if_it_were_not_there() -> None:
    torch.manual_seed(0)
    long, short = torch.randn(5, 3).log_softmax(-1), torch.randn(2, 3).log_softmax(-1)
    padded = torch.stack([long, torch.cat([short, torch.full((3, 3), 7.0)])])
    targets = [[0.2, 0.2, 0.6], [0.5, 0.5, 0.0]]
    together = proportion_loss(padded, bags([[True] * 5, [True] * 2 + [False] * 3], targets))
    alone = [
        proportion_loss(part[None], bags([[True] * len(part)], [target]))
        for part, target in zip((long, short), targets, strict=True)
    ]
    assert float(together) == pytest.approx(float(sum(alone) / 2), abs=1e-6)


def test_order_inside_a_bag_and_of_bags_does_not_matter() -> None:
    torch.manual_seed(1)
    log_proba = torch.randn(3, 6, 2).log_softmax(-1)
    targets = [[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]
    loss = proportion_loss(log_proba, bags([[True] * 6] * 3, targets))
    shuffled = proportion_loss(
        log_proba[[2, 0, 1]][:, torch.randperm(6)], bags([[True] * 6] * 3, [targets[i] for i in (2, 0, 1)])
    )
    assert float(loss) == pytest.approx(float(shuffled), abs=1e-6)


def test_bag_log_proba_is_the_log_of_the_masked_mean() -> None:
    torch.manual_seed(2)
    log_proba = torch.randn(2, 4, 3).log_softmax(-1)
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    expected = torch.stack([log_proba[0, :3].exp().mean(0).log(), log_proba[1, 0]])
    assert torch.allclose(bag_log_proba(log_proba, mask), expected, atol=1e-6)

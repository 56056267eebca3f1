"""Known answers of the bag losses."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from small import everything, make_bags, no_features

from llpbench.blocks.losses import BagMeans, count_loss, info_nce, proportion_loss
from llpbench.core.bags import Bags
from llpbench.core.method import Pairs
from llpbench.methods.tabllp_bdc import _difference_contrast


def bags(mask: list[list[bool]], proportions: list[list[float]]) -> Bags:
    """Bags with mask and proportions, all that a loss uses."""
    return make_bags(no_features(len(mask), len(mask[0])), torch.tensor(mask), proportions)


def test_absent_classes_and_extreme_predictions_are_finite() -> None:
    logits = torch.tensor([[[60.0, -60.0], [60.0, -60.0]]], requires_grad=True)
    loss = proportion_loss(logits.log_softmax(-1), bags([[True, True]], [[0.0, 1.0]]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(120, rel=1e-5)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_bag_means_leave_out_padding_and_bags_without_counts() -> None:
    some = bags([[True, True], [True, False], [True, True]], [[0.5, 0.5]] * 3)
    some = some._replace(known=torch.tensor([True, True, False]))
    values = torch.tensor([[[0.0], [2.0]], [[4.0], [99.0]], [[7.0], [9.0]]])
    found = BagMeans.of(values, some)
    assert found.means.tolist() == [[1.0], [4.0], [8.0]]
    assert found.sizes.tolist() == [2.0, 1.0, 0.0]
    assert float(found.overall) == pytest.approx(2.0)
    assert found.of_others(0.0).tolist() == [[4.0], [1.0], [2.0]]


def pairs(*partners: int, positive: list[bool] | None = None) -> Pairs:
    partner = torch.tensor(partners)
    return Pairs(partner, torch.tensor(positive) if positive else partner >= 0)


def test_difference_contrast_matches_loop() -> None:
    torch.manual_seed(1)
    similarity = torch.randn(4, 4)
    found, positive = pairs(2, 0, 3, 1, positive=[True, False, True, True]), [(0, 2), (2, 3), (3, 1)]
    forward = -sum(float(similarity[i].log_softmax(0)[j]) for i, j in positive) / 3
    backward = -sum(float(similarity[:, j].log_softmax(0)[i]) for i, j in positive) / 3
    for both, expected in ((True, (forward + backward) / 2), (False, forward)):
        loss = _difference_contrast(similarity, found, everything(4), everything(4), both)
        assert float(loss) == pytest.approx(expected, abs=1e-6)


def test_info_nce_is_symmetric_cross_entropy_without_padding() -> None:
    torch.manual_seed(0)
    a, b = torch.nn.functional.normalize(torch.randn(2, 6, 4), dim=-1)
    logits, itself = a[:5] @ b[:5].T / 0.7, torch.arange(5)
    cross_entropy = torch.nn.functional.cross_entropy
    expected = (cross_entropy(logits, itself) + cross_entropy(logits.T, itself)) / 2
    assert torch.allclose(info_nce(a, b, torch.arange(6) < 5, 0.7), expected, atol=1e-6)


def test_every_known_bag_counts_once() -> None:
    """The mean of the known bags' divergences: neither of rows, nor of all bags."""
    torch.manual_seed(5)
    log_proba = (2 * torch.randn(4, 6, 2)).log_softmax(-1)
    sizes, targets = (6, 1, 3, 2), torch.tensor([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5], [0.9, 0.1]])
    mask = torch.stack([torch.arange(6) < size for size in sizes])
    known = [True, True, False, True]
    each = []
    for bag in (0, 1, 3):
        mean = log_proba[bag, : sizes[bag]].exp().mean(dim=0)
        each.append(float(sum(p * (p / q).log() for p, q in zip(targets[bag], mean, strict=True) if p > 0)))
    given = make_bags(no_features(4, 6), mask, targets.tolist(), known=known)
    found = float(proportion_loss(log_proba, given))
    assert found == pytest.approx(sum(each) / 3, abs=1e-6)
    by_rows = (6 * each[0] + each[1] + 2 * each[2]) / 9
    assert abs(found - by_rows) > 1e-2


def test_count_loss_of_small_bags_is_exact() -> None:
    p = torch.tensor([0.9, 0.2, 0.6, 0.4], dtype=torch.float64)
    log_proba = torch.stack([1 - p, p], dim=-1).log()[None]
    for count in range(5):
        expected = sum(
            math.prod(float(p[i]) if chosen else 1 - float(p[i]) for i, chosen in enumerate(drawn))
            for drawn in itertools.product((False, True), repeat=4)
            if sum(drawn) == count
        )
        four = bags([[True] * 4], [[1 - count / 4, count / 4]])
        assert float(count_loss(log_proba, four)) == pytest.approx(-math.log(expected), rel=1e-6)


def test_count_loss_gradient_is_prediction_minus_posterior() -> None:
    # spec: p = (.9, .2), one of the two is positive: posteriors (.97297, .02703)
    logits = torch.tensor([[[0.0, math.log(9)], [0.0, math.log(0.25)]]], requires_grad=True)
    count_loss(logits.log_softmax(-1), bags([[True, True]], [[0.5, 0.5]])).backward()
    assert logits.grad is not None
    assert logits.grad[0, :, 1].tolist() == pytest.approx([0.9 - 36 / 37, 0.2 - 1 / 37], abs=1e-6)


def test_count_loss_of_large_bags_is_normal_approximation() -> None:
    p = torch.linspace(0.1, 0.7, 40, dtype=torch.float64)
    padded = torch.cat([p, torch.full((9,), 0.5)]).double()
    log_proba = torch.stack([1 - padded, padded], dim=-1).log()[None]
    one = bags([[True] * 40 + [False] * 9], [[0.5, 0.5]])
    variance = float((p * (1 - p)).sum()) + 1 / 12
    expected = (20 - float(p.sum())) ** 2 / (2 * variance) + math.log(2 * math.pi * variance) / 2
    assert float(count_loss(log_proba, one)) == pytest.approx(expected, rel=1e-6)
    three = torch.tensor([[[0.2, 0.3, 0.5]] * 40]).double().log()
    each = [(20.0, 0.2), (12.0, 0.3), (8.0, 0.5)]
    spread = [(40 * q * (1 - q) + 1 / 12, n - 40 * q) for n, q in each]
    total = sum(away**2 / (2 * v) + math.log(2 * math.pi * v) / 2 for v, away in spread)
    assert float(count_loss(three, bags([[True] * 40], [[0.5, 0.3, 0.2]]))) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(("rows", "logit"), [(1, 17.0), (1, 25.0), (3, 80.0), (12, 8.0), (40, 80.0)])
def test_count_loss_pulls_back_certain_wrong_predictions(rows: int, logit: float) -> None:
    padding = 1 if rows < 12 else 0
    logits = torch.tensor([[[logit, 0.0]] * rows + [[0.0, 0.0]] * padding], requires_grad=True)
    value = count_loss(logits.log_softmax(-1), bags([[True] * rows + [False] * padding], [[0.0, 1.0]]))
    value.backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    if rows < 40:  # of more rows the normal approximation is as far away as it likes
        assert float(value.detach()) == pytest.approx(rows * (logit + math.log1p(math.exp(-logit))), rel=1e-6)
        assert logits.grad[0, :, 1].tolist() == pytest.approx([-1.0] * rows + [0.0] * padding, abs=1e-3)
    assert value.isfinite()

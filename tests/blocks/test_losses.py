"""Losses of bags, alone and compared with each other: known answers, enumeration, and what they estimate."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
import torch
from small import everything, make_bags, no_features, stream
from torch import Tensor

from llpbench.blocks.losses import BagMeans, count_loss, info_nce, proportion_loss
from llpbench.core.bags import Bags
from llpbench.core.method import Pairs
from llpbench.methods.bag_contrast import _pair_contrast
from llpbench.methods.debiased_square import _leave_out, _stretched
from llpbench.methods.debiased_square import _stream as streamed
from llpbench.methods.easy_llp import _bag_estimates, _class_losses
from llpbench.methods.mixbag import QUANTILE, _some_of, _standard_error
from llpbench.methods.moment_matching import _counted_classes, _drawn_classes, _moment_loss
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


def test_difference_contrast_matches_loop() -> None:
    torch.manual_seed(1)
    similarity = torch.randn(4, 4)
    found, positive = (
        Pairs(torch.tensor([2, 0, 3, 1]), torch.tensor([True, False, True, True])),
        [(0, 2), (2, 3), (3, 1)],
    )
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
    log_proba = torch.stack([1 - p, p], dim=-1)[None].log()
    labels = [torch.tensor(drawn) for drawn in product((0, 1), repeat=4)]
    for count in range(5):
        expected = sum(float((p**y * (1 - p) ** (1 - y)).prod()) for y in labels if y.sum() == count)
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


def test_standard_errors_are_those_without_replacement() -> None:
    half, ten = torch.tensor([[0.5, 0.5]]), torch.tensor([10.0])
    error = _standard_error(half, torch.tensor([50.0]), torch.tensor([1e9]))
    assert float(QUANTILE * error[0, 0]) == pytest.approx(0.182139, abs=1e-6)
    assert float(_standard_error(half, ten, ten).max()) == 0.0, "a bag taken whole"
    assert float(_standard_error(half, torch.tensor([0.0]), ten).max()) < 10
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], [12, 8])
    shares = [rng.permutation(labels)[:6].mean() for _ in range(20_000)]
    found = _standard_error(torch.tensor([[0.6, 0.4]]), torch.tensor([6.0]), torch.tensor([20.0]))
    assert float(found[0, 1]) == pytest.approx(np.std(shares), rel=0.03)


def test_rows_are_sampled_without_replacement_or_padding() -> None:
    log_proba = torch.tensor([0.1, 0.2, 0.4, 0.9]).log()[None, :, None].expand(3, 4, 1)
    mask = torch.tensor([[True] * 4, [True, True, True, False], [True] * 4])
    seen = set()
    for key in range(40):
        found = _some_of(log_proba, mask, torch.tensor([4.0, 2.0, 0.0]), stream(key)).exp().flatten().tolist()
        assert found[0] == pytest.approx(1.6)
        assert found[2] == 0.0
        seen.add(round(found[1], 3))
    assert seen == {0.3, 0.5, 0.6}


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_order_statistics_match_enumeration(order: int, classes: int) -> None:
    """Of bags of five and four rows, one padded."""
    rng = np.random.default_rng(0)
    proba, sizes = rng.dirichlet(np.ones(classes), (2, 5)), [5, 4]
    proba[1, 4] = 0
    found = _drawn_classes(torch.tensor(proba), torch.tensor(sizes), order).numpy()
    counts = np.array([[2, 3, 0], [1, 0, 3]])[:, :classes]
    counts[:, 0] += np.array(sizes) - counts.sum(axis=1)
    counted = _counted_classes(torch.tensor(counts, dtype=torch.float64), order).numpy()
    for k, size in enumerate(sizes):
        rows = list(permutations(range(size), order))
        labels = np.repeat(np.arange(classes), counts[k])
        for of in product(range(classes), repeat=order):
            drawn = np.mean([np.prod([proba[k, i, c] for i, c in zip(chosen, of, strict=True)]) for chosen in rows])
            assert found[k][of] == pytest.approx(drawn)
            share = np.mean([all(labels[i] == c for i, c in zip(chosen, of, strict=True)) for chosen in rows])
            assert counted[k][of] == pytest.approx(share)


def test_small_bags_use_available_orders_only() -> None:
    """A single row has its cross-entropy; noisy counts of it ask for no pair."""
    mask = torch.tensor([[True, False, False], [True, True, False]])
    log_proba = torch.tensor([[[0.8, 0.2]] * 3, [[0.6, 0.4]] * 3]).log()
    bags = make_bags(no_features(2, 3), mask, [[1.0, 0.0], [0.5, 0.5]])
    one = _moment_loss(log_proba, bags._replace(known=torch.tensor([True, False])), 3)
    assert float(one) == pytest.approx(-np.log(0.8), abs=1e-5)
    two = _moment_loss(log_proba, bags._replace(known=torch.tensor([False, True])), 3, uniform=0.0)
    expected = (-np.log(0.24) / 2 - np.log(0.24)) / 2  # halves of either class, then both orders of the two
    assert float(two) == pytest.approx(expected, abs=1e-5)


LAW = [(0.2, 0, 0.5), (0.6, 1, 0.3), (0.9, 0, 0.2)]
"""prediction of the second class, label and probability of three kinds of rows"""


def drawn(*sizes: int) -> list[tuple[float, Tensor, Bags]]:
    """Every draw of bags of these sizes from `LAW`: its probability, log predictions [bags, size, 2], and bags."""
    found = []
    mask = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
    prior = torch.tensor([0.7, 0.3])
    for kinds in product(range(3), repeat=sum(sizes)):
        p, y = torch.full(mask.shape, 0.5), torch.zeros(mask.shape)
        p[mask], y[mask] = torch.tensor([LAW[k][0] for k in kinds]), torch.tensor([float(LAW[k][1]) for k in kinds])
        share = (y * mask).sum(dim=1) / mask.sum(dim=1)
        bags = make_bags(no_features(*mask.shape), mask, torch.stack([1 - share, share], dim=1).tolist())
        probability = float(np.prod([LAW[k][2] for k in kinds]))
        found.append((probability, torch.stack([1 - p, p], dim=-1).log(), bags._replace(prior=prior)))
    return found


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3)])
def test_expected_contrast_is_twice_variance_of_errors(sizes: tuple[int, int]) -> None:
    found = sum(w * float(_pair_contrast(*BagMeans.residuals(lp, bags))) for w, lp, bags in drawn(*sizes))
    assert found == pytest.approx(0.4088, abs=1e-5)


M4 = torch.tensor([4.0, 4.0])
PROPORTIONS, MEANS, PRIOR = torch.tensor([[0.5, 0.5], [0.75, 0.25]]), torch.tensor([[0.6, 0.4]] * 2), (0.625, 0.375)


def test_leave_out_equals_stream_corrected_by_step_mean() -> None:
    prior = torch.tensor(PRIOR)
    assert float(_leave_out(MEANS - PROPORTIONS, BagMeans(MEANS, M4), prior)) == pytest.approx(0.12625, abs=1e-6)
    assert float(streamed(MEANS - PROPORTIONS, BagMeans(MEANS, M4), prior, prior, 0.0)) == pytest.approx(
        0.12625, abs=1e-6
    )
    means = prior.expand(2, 2)  # constant predictions of the prior need no correction
    expected = (4 * (prior - PROPORTIONS).square().sum(dim=1)).mean()
    assert torch.allclose(streamed(means - PROPORTIONS, BagMeans(means, M4), prior, prior, 0.99), expected)


def test_stretch_of_predictions_by_step_bags_without_ties() -> None:
    prior = torch.tensor([0.5, 0.5])
    log_proba = torch.tensor([[0.6, 0.4], [0.1, 0.9]]).log()
    for bags, first in ((2.0, 0.7), (8.0, 0.5 + 0.8 / 7)):
        found = _stretched(log_proba, prior, torch.tensor(bags)).exp()
        assert torch.allclose(found[0], torch.tensor([first, 1 - first]))
        assert torch.allclose(found.sum(dim=1), torch.ones(2))
    assert torch.equal(_stretched(log_proba, prior, torch.tensor(1.0)), log_proba)
    p = torch.linspace(0.01, 0.99, 99)
    found = _stretched(torch.stack([1 - p, p], dim=1).log(), torch.tensor([0.9, 0.1]), torch.tensor(2.0))[:, 1]
    assert bool((found.diff() > 0).all())


@pytest.mark.parametrize(("sizes", "baseline"), [((2,), "none"), ((3,), "none"), ((2, 2), "others"), ((2, 2), "none")])
def test_estimated_supervised_loss_is_unbiased(sizes: tuple[int, ...], baseline: str) -> None:
    total = 0.0
    for weight, log_proba, bags in drawn(*sizes):
        means = BagMeans.of(_class_losses(log_proba, "cross-entropy"), bags)
        total += weight * float(_bag_estimates(means, bags, baseline).mean())
    assert total == pytest.approx(0.725336, abs=1e-5)
    p = torch.tensor([0.7, 0.2, 0.1])
    brier = (torch.eye(3) - p).square().sum(dim=1)
    assert _class_losses(p.log(), "square").tolist() == pytest.approx(brier.tolist())


def test_bag_means_leave_out_padding_and_others_weight_rows() -> None:
    some = bags([[True, True], [True, False], [True, True]], [[0.5, 0.5]] * 3)
    some = some._replace(known=torch.tensor([True, True, False]))
    values = torch.tensor([[[0.0], [2.0]], [[4.0], [99.0]], [[7.0], [9.0]]])
    found = BagMeans.of(values, some)
    assert found.means.tolist() == [[1.0], [4.0], [8.0]]
    assert found.sizes.tolist() == [2.0, 1.0, 0.0]
    assert float(found.overall) == pytest.approx(2.0)
    assert found.of_others(0.0).tolist() == [[4.0], [1.0], [2.0]]
    others = BagMeans(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 2.0, 1.0])).of_others(0.0)
    assert others.flatten().tolist() == pytest.approx([8 / 3, 2.5, 5 / 3])
    alone = BagMeans(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 0.0]))
    assert alone.of_others(7.0).flatten().tolist() == [7.0, 1.0]
    lone = BagMeans(torch.tensor([[0.5, 0.9]]), torch.tensor([4.0]))
    one = bags([[True] * 4], [[0.5, 0.5]])
    assert torch.equal(_bag_estimates(lone, one, "others"), _bag_estimates(lone, one, "none")), "there is no baseline"

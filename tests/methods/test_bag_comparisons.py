"""Losses that compare bags with each other: known answers, and what they estimate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from small import make_bags, no_features
from torch import Tensor

from llpbench.blocks.losses import BagMeans
from llpbench.core.bags import Bags
from llpbench.methods.bag_contrast import _pair_contrast
from llpbench.methods.debiased_square import _leave_out, _stretched
from llpbench.methods.debiased_square import _stream as streamed
from llpbench.methods.easy_llp import _bag_estimates, _class_losses

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


def test_leave_one_out_means_weight_rows_and_lone_bag_has_no_baseline() -> None:
    found = BagMeans(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 2.0, 1.0])).of_others(0.0)
    assert found.flatten().tolist() == pytest.approx([8 / 3, 2.5, 5 / 3])
    alone = BagMeans(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 0.0]))
    assert alone.of_others(7.0).flatten().tolist() == [7.0, 1.0]
    bags = make_bags(no_features(1, 4), torch.ones(1, 4, dtype=torch.bool), [[0.5, 0.5]])
    means = BagMeans(torch.tensor([[0.5, 0.9]]), torch.tensor([4.0]))
    assert torch.equal(_bag_estimates(means, bags, "others"), _bag_estimates(means, bags, "none"))

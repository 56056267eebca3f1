"""MixBag: which rows are drawn, the interval of their proportions, and what it leaves of the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from small import make_bags, mlp, moment, some_bags, stream

from llpbench.blocks.losses import bag_log_proba
from llpbench.core.model import Model
from llpbench.data.toy import toy_task
from llpbench.methods.mixbag import QUANTILE, MixBag, MixBagParams, some_of, standard_error


def test_errors_are_those_of_draws_without_replacement() -> None:
    half, ten = torch.tensor([[0.5, 0.5]]), torch.tensor([10.0])
    error = standard_error(half, torch.tensor([50.0]), torch.tensor([1000.0]), finite=False)
    assert float(QUANTILE * error[0, 0]) == pytest.approx(0.182139, abs=1e-6)
    assert float(standard_error(half, ten, ten, finite=True).max()) == 0.0, "a bag taken whole"
    assert float(standard_error(half, torch.tensor([0.0]), ten, finite=True).max()) < 10
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], [12, 8])
    shares = [rng.permutation(labels)[:6].mean() for _ in range(20_000)]
    found = standard_error(torch.tensor([[0.6, 0.4]]), torch.tensor([6.0]), torch.tensor([20.0]), finite=True)
    assert float(found[0, 1]) == pytest.approx(np.std(shares), rel=0.03)


def test_rows_are_drawn_without_replacement_and_never_padding() -> None:
    log_proba = torch.tensor([0.1, 0.2, 0.4, 0.9]).log()[None, :, None].expand(3, 4, 1)
    mask = torch.tensor([[True] * 4, [True, True, True, False], [True] * 4])
    seen = set()
    for key in range(40):
        found = some_of(log_proba, mask, torch.tensor([4.0, 2.0, 0.0]), stream(key)).exp().flatten().tolist()
        assert found[0] == pytest.approx(1.6)
        assert found[2] == 0.0
        seen.add(round(found[1], 3))
    assert seen == {0.3, 0.5, 0.6}


def test_a_mixture_inside_its_interval_has_no_gradient_and_one_outside_has() -> None:
    task = toy_task(0)
    method = MixBag(MixBagParams(hidden=8, probability=1.0, share="half"))
    network: Any = method.build(mlp(task), task.schema)
    bags = make_bags(some_bags().rows, some_bags().mask, [[0.5, 0.5], [0.5, 0.5]])
    norms = []
    for shift in (0.0, 5.0):
        with torch.no_grad():
            network.head[-1].weight.zero_()
            network.head[-1].bias.copy_(torch.tensor([0.0, shift]))
        loss = method.loss(Model(network, stream()), bags, moment())
        (gradient,) = torch.autograd.grad(loss, [network.head[-1].bias])
        norms.append(float(gradient.abs().max()))
    assert norms[0] == 0.0
    assert norms[1] > 0.1


def test_bags_that_are_left_as_they_are_have_all_their_rows() -> None:
    log_proba = torch.randn(2, 5, 3).log_softmax(dim=-1)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    found = some_of(log_proba, mask, mask.sum(dim=1).float(), stream()) - mask.sum(dim=1, keepdim=True).log()
    assert torch.allclose(found, bag_log_proba(log_proba, mask), atol=1e-5)

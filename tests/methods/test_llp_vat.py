"""LLP-VAT: the worst direction of a linear model is known, and so is its divergence."""

from __future__ import annotations

import math

import pytest
import torch
from small import moment, some_bags, stream
from torch import Tensor, nn

from llpbench.core.bags import Rows
from llpbench.core.model import Encoder, Encoding, Model, Network, Random
from llpbench.methods.llp_vat import LLPVAT, VATParams


class Linear(Encoder):
    """z is the sum of the embeddings, the embeddings are the numbers: a = w e."""

    dim, token_dim = 1, 1

    def embed(self, rows: Rows) -> Tensor:
        tokens: Tensor = rows.numeric.unsqueeze(-1)
        return tokens

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        del mask, random
        return Encoding(embeddings.flatten(-2), embeddings)


def linear_model(weight: list[float]) -> Model:
    network = Network(Linear(), nn.Linear(3, 2, bias=False))
    with torch.no_grad():
        network.get_parameter("head.weight").copy_(torch.tensor([[0.0, 0.0, 0.0], weight]))
    return Model(network, stream())


def bernoulli_kl(p: Tensor, q: Tensor) -> Tensor:
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_consistency_of_a_linear_model(epsilon: float) -> None:
    """After one power iteration the direction is +-w / |w|: each row's term is one of two numbers."""
    weight, bags = [1.0, -2.0, 0.5], some_bags()
    bags = bags._replace(mask=torch.zeros_like(bags.mask))
    method = LLPVAT(VATParams(epsilon=epsilon))
    length = math.sqrt(sum(w * w for w in weight))
    for row in range(5):
        single = bags.mask.clone()
        single[0, row] = True
        a = (bags.rows.numeric[0, row] * torch.tensor(weight)).sum()
        expected = [float(bernoulli_kl(a.sigmoid(), (a + sign * epsilon * length).sigmoid())) for sign in (1, -1)]
        found = float(method.consistency(linear_model(weight), bags._replace(mask=single)).detach())
        assert min(abs(found - value) for value in expected) < 1e-5


def test_a_constant_head_is_consistent_and_gradients_are_left_alone() -> None:
    model = linear_model([0.0, 0.0, 0.0])
    assert float(LLPVAT().consistency(model, some_bags()).detach()) == 0
    model = linear_model([1.0, 2.0, 3.0])
    loss = LLPVAT().consistency(model, some_bags())
    weight = model.network.get_parameter("head.weight")
    assert weight.grad is None
    (gradient,) = torch.autograd.grad(loss, [weight])
    assert bool((gradient != 0).any())


def test_the_direction_is_a_constant_of_the_loss() -> None:
    """Its gradient is that of the divergence at a fixed perturbation, here by finite differences."""
    method, bags = LLPVAT(VATParams(epsilon=0.5)), some_bags()
    model = linear_model([1.0, -2.0, 0.5])
    (gradient,) = torch.autograd.grad(method.consistency(model, bags), [model.network.get_parameter("head.weight")])
    # of w -> s w, the direction w / |w| does not change, only |w| and the target's logits, which are constants
    weight, step = torch.tensor([1.0, -2.0, 0.5]), 1e-3

    def moved(scale: float) -> float:
        target = (bags.rows.numeric @ weight).sigmoid()
        signs = []
        for sign in (1, -1):
            a = bags.rows.numeric @ (scale * weight) + sign * 0.5 * scale * weight.norm()
            signs.append(bernoulli_kl(target, a.sigmoid()))
        chosen = torch.where(first_sign, signs[0], signs[1])
        return float(chosen.mean())

    rows = []
    for i in range(bags.mask.numel()):
        mask = torch.zeros_like(bags.mask).flatten()
        mask[i] = True
        fresh = Model(model.network, stream())
        value = method.consistency(fresh, bags._replace(mask=mask.view_as(bags.mask))).detach()
        target = (bags.rows.numeric.flatten(0, 1)[i] @ weight).sigmoid()
        plus = bernoulli_kl(target, (bags.rows.numeric.flatten(0, 1)[i] @ weight + 0.5 * weight.norm()).sigmoid())
        rows.append(bool((value - plus).abs() < 1e-5))
    first_sign = torch.tensor(rows).view_as(bags.mask)
    numeric = (moved(1 + step) - moved(1 - step)) / (2 * step)
    assert float((gradient[1] * weight).sum()) == pytest.approx(numeric, rel=1e-2)


def test_the_ramp_reaches_its_weight_after_its_part_of_the_steps() -> None:
    method = LLPVAT(VATParams(weight=0.5, ramp=0.4))
    assert float(method.schedules(moment(step=0))["w"]) == pytest.approx(0.5 * math.exp(-5))
    assert float(method.schedules(moment(step=20))["w"]) == pytest.approx(0.5 * math.exp(-5 / 4))
    assert float(method.schedules(moment(step=40))["w"]) == pytest.approx(0.5)
    assert float(method.schedules(moment(step=90))["w"]) == pytest.approx(0.5)
    assert float(LLPVAT(VATParams(weight=0.5, ramp=0.0)).schedules(moment(step=0))["w"]) == 0.5

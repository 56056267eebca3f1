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
    """After one power iteration the direction is +-w / |w|; the gradient takes direction and target for constants."""
    weight, bags = torch.tensor([1.0, -2.0, 0.5]), some_bags()
    method, model = LLPVAT(VATParams(epsilon=epsilon)), linear_model(weight.tolist())
    for row in range(5):
        mask = torch.zeros_like(bags.mask)
        mask[0, row] = True
        a = (bags.rows.numeric[0, row] * weight).sum().double()

        def divergence(sign: int, scale: float = 1.0, a: Tensor = a) -> float:
            return float(bernoulli_kl(a.sigmoid(), (scale * (a + sign * epsilon * weight.norm())).sigmoid()))

        loss = method.consistency(model, bags._replace(mask=mask))
        sign = min((1, -1), key=lambda sign: abs(divergence(sign) - float(loss.detach())))
        assert float(loss.detach()) == pytest.approx(divergence(sign), abs=1e-5)
        (gradient,) = torch.autograd.grad(loss, [model.network.get_parameter("head.weight")])
        slope = (divergence(sign, 1 + 1e-4) - divergence(sign, 1 - 1e-4)) / 2e-4
        assert float((gradient[1] * weight).sum()) == pytest.approx(slope, rel=1e-2, abs=1e-5)


def test_a_constant_head_is_consistent_and_gradients_are_left_alone() -> None:
    model = linear_model([0.0, 0.0, 0.0])
    assert float(LLPVAT().consistency(model, some_bags()).detach()) == 0
    model = linear_model([1.0, 2.0, 3.0])
    loss = LLPVAT().consistency(model, some_bags())
    weight = model.network.get_parameter("head.weight")
    assert weight.grad is None
    (gradient,) = torch.autograd.grad(loss, [weight])
    assert bool((gradient != 0).any())


def test_the_ramp_reaches_its_weight_after_its_part_of_the_steps() -> None:
    method = LLPVAT(VATParams(weight=0.5, ramp=0.4))
    assert float(method.schedules(moment(step=0))["w"]) == pytest.approx(0.5 * math.exp(-5))
    assert float(method.schedules(moment(step=20))["w"]) == pytest.approx(0.5 * math.exp(-5 / 4))
    assert float(method.schedules(moment(step=40))["w"]) == pytest.approx(0.5)
    assert float(method.schedules(moment(step=90))["w"]) == pytest.approx(0.5)
    assert float(LLPVAT(VATParams(weight=0.5, ramp=0.0)).schedules(moment(step=0))["w"]) == 0.5

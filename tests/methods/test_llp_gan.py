"""LLP-GAN: known answers, padding, columns of all kinds, whose turn it is, and that it learns."""

from __future__ import annotations

import pytest
import torch
from small import make_bags
from torch import Tensor

from llpbench.core.bags import Bags, Rows, Schema
from llpbench.core.model import NoEncoder, Random
from llpbench.methods.llp_gan import LLPGAN, _GANParams, _gradient_penalty, _Players

SCHEMA = Schema(numeric=2, cardinalities=(4, 3, 3), classes=2, prior=(0.5, 0.5), rows_per_step=10)
OBJECTIVES = ["fm", "wgan"]


def some_bags(seed: int = 0, schema: Schema = SCHEMA, proportions: tuple[float, ...] = (0.5, 0.5)) -> Bags:
    """Two bags padded to five rows; the second has three."""
    torch.manual_seed(seed)
    codes = [torch.randint(0, width, (2, 5)) for width in schema.cardinalities]
    rows = Rows(
        torch.randn(2, 5, schema.numeric),
        torch.stack(codes, dim=-1) if codes else torch.zeros(2, 5, 0, dtype=torch.long),
        torch.rand(2, 5, schema.numeric) < 0.2,
    )
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return make_bags(rows, mask, [proportions, proportions])


def players(method: LLPGAN, schema: Schema = SCHEMA) -> _Players:
    torch.manual_seed(1)
    network = method.build(NoEncoder(), schema)
    assert isinstance(network, _Players)
    return network


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradient_penalty_matches_independent_autograd(objective: str) -> None:
    method = LLPGAN(_GANParams(objective=objective, gradient_penalty=1.0))  # type: ignore[arg-type]
    network, bags = players(method), some_bags()
    discriminator = network.discriminator
    rows = network.columns.vectors(bags.rows)
    weights = list(discriminator.parameters())

    def score(x: Tensor) -> Tensor:
        scored: Tensor = discriminator(x, None).score
        return scored

    ours = _gradient_penalty(score, rows, bags.mask)
    each = []
    for row in rows[bags.mask]:
        single = row.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(score(single), single, create_graph=True)
        each.append((torch.linalg.vector_norm(gradient) - 1) ** 2)
    theirs = torch.stack(each).mean()
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-4)
    for one, other in zip(
        torch.autograd.grad(ours, weights, allow_unused=True),
        torch.autograd.grad(theirs, weights, allow_unused=True),
        strict=True,
    ):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_fake_categories_are_distributions_following_logits(temperature: float) -> None:
    """The largest of logits + Gumbel noise is drawn from their softmax, at any temperature."""
    generator = players(LLPGAN(_GANParams(temperature=temperature))).generator
    fake = generator((50,), Random(torch.tensor(0)))
    assert fake.shape == (50, 2 + 4 + 3 + 3 + 2 + 2)
    for column in fake[:, 2:].split([4, 3, 3, 2, 2], dim=-1):
        assert torch.allclose(column.sum(dim=-1), torch.ones(50), atol=1e-6)
        assert (column >= 0).all()
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, *[0.0] * 10]).repeat(20_000, 1)
    drawn = generator.gumbel_softmax(logits, Random(torch.tensor(0)))[:, :4].argmax(dim=-1)
    assert torch.allclose(drawn.bincount() / 20_000, logits[0, :4].softmax(dim=-1), atol=0.01)

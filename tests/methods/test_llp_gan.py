"""LLP-GAN: known answers, padding, columns of all kinds, whose turn it is, and that it learns."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from small import make_bags, moment
from torch import Tensor, nn

from llpbench.core.bags import Bags, Rows, Schema
from llpbench.core.model import Model, Network, NoEncoder, Random
from llpbench.methods.llp_gan import (
    LLPGAN,
    _feature_matching,
    _GANParams,
    _gradient_penalty,
    _Players,
)

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


def model(network: Network, key: int | None = 7) -> Model:
    return Model(network, None if key is None else Random(torch.tensor(key)))


def losses(method: LLPGAN, network: Network, bags: Bags) -> list[float]:
    phases = ("discriminator", "generator")
    return [float(method.loss(model(network), bags, moment(phase=phase)).detach()) for phase in phases]


@pytest.mark.parametrize("proportions", [(0.5, 0.5), (0.25, 0.75)])
def test_discriminator_loss_matches_known_value(proportions: tuple[float, float]) -> None:
    """Logits of 0 for real and fake rows: log 4.5 + weight * (log 2 - the entropy of the proportions)."""
    method = LLPGAN(_GANParams(proportion_weight=3.0))
    network = players(method)
    nn.init.zeros_(network.discriminator.classifier.weight)
    nn.init.zeros_(network.discriminator.classifier.bias)
    loss = losses(method, network, some_bags(proportions=proportions))[0]
    entropy = -sum(p * math.log(p) for p in proportions)
    assert (loss - math.log(4.5)) / 3.0 + entropy == pytest.approx(math.log(2), abs=1e-6)


def test_generator_loss_matches_means_and_is_zero_for_real_rows() -> None:
    features, mask = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), torch.ones(2, 5) > 0
    assert float(_feature_matching(features, features, mask)) == 0.0
    assert float(_feature_matching(features, features.flip(0, 1), mask)) == pytest.approx(0.0, abs=1e-12)
    assert float(_feature_matching(features, features + torch.arange(8.0), mask)) == pytest.approx(140 / 8)
    method = LLPGAN(_GANParams(dropout=0.0))
    network = players(method)
    bags = some_bags()
    assert losses(method, network, bags)[1] > 1e-3
    real = network.vectors(bags.rows)
    network.generator.forward = lambda *_: real  # type: ignore[method-assign, assignment]
    assert losses(method, network, bags)[1] < 1e-4  # the noise on numbers is left


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


@pytest.mark.parametrize(
    "schema",
    [
        replace(SCHEMA, cardinalities=()),
        replace(SCHEMA, numeric=0),
        replace(SCHEMA, cardinalities=(10_001, 2)),
        replace(SCHEMA, classes=3, prior=(0.2, 0.3, 0.5)),
    ],
    ids=["numbers alone", "categories alone", "10,000 categories", "three classes"],
)
def test_gan_trains_on_tables_of_every_kind(schema: Schema) -> None:
    """With the objective that is not the default, which `test_conformance.py` looks at."""
    method = LLPGAN(_GANParams(objective="wgan"))
    network, bags = players(method, schema), some_bags(schema=schema, proportions=schema.prior)
    for phase in ("discriminator", "generator"):
        player = list(getattr(network, phase).parameters())
        loss = method.loss(model(network), bags, moment(phase=phase))
        gradients = torch.autograd.grad(loss, player, allow_unused=True)
        assert loss.isfinite()
        assert any(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)
        assert all(gradient is None or gradient.isfinite().all() for gradient in gradients)
    log_proba = method.log_proba(model(network, None), bags)
    assert log_proba.shape == (2, 5, schema.classes)
    assert torch.allclose(log_proba.exp().sum(dim=-1), torch.ones(2, 5), atol=1e-5)

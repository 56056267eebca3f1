"""LLP-GAN, LLP-VAT, LLP-AAE: their terms by hand; methods without their term."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small import SCHEMA, make_bags, mlp, moment, no_features, small_encoder, some_bags, stream, toy_task
from torch import Tensor, nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Model, Network, NoEncoder, Random
from llpbench.methods.ahil import AHIL
from llpbench.methods.llp_aae import LLPAAE, _drawn_classes, _LLPAAEParams
from llpbench.methods.llp_gan import LLPGAN, _GANParams, _gradient_penalty, _Players
from llpbench.methods.llp_vat import LLPVAT, _VATParams
from llpbench.methods.mixbag import MixBag
from llpbench.methods.rot import ROT
from llpbench.methods.tabllp_self import TabLLPSelf

COLUMNS = Schema(numeric=2, cardinalities=(4, 3, 3), classes=2, prior=(0.5, 0.5), rows_per_step=10)


def players(method: LLPGAN) -> _Players:
    torch.manual_seed(1)
    network = method.build(NoEncoder(), COLUMNS)
    assert isinstance(network, _Players)
    return network


@pytest.mark.parametrize("objective", ["fm", "wgan"])
def test_gradient_penalty_matches_independent_autograd(objective: str) -> None:
    method = LLPGAN(_GANParams(objective=objective, gradient_penalty=1.0))  # type: ignore[arg-type]
    network = players(method)
    discriminator = network.discriminator
    torch.manual_seed(0)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    codes = torch.stack([torch.randint(0, width, (2, 5)) for width in COLUMNS.cardinalities], dim=-1)
    rows = network.columns.vectors(Rows(torch.randn(2, 5, 2), codes, torch.rand(2, 5, 2) < 0.2))
    weights = list(discriminator.parameters())

    def score(x: Tensor) -> Tensor:
        return discriminator(x, None).score

    ours = _gradient_penalty(score, rows, mask)
    each = []
    for row in rows[mask]:
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


class Linear(Encoder):
    """z is the sum of the embeddings, the embeddings are the numbers: a = w e."""

    dim, token_dim = 1, 1

    def embed(self, rows: Rows) -> Tensor:
        return rows.numeric.unsqueeze(-1)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        return Encoding(embeddings.flatten(-2), embeddings)


def linear_model(weight: list[float]) -> Model:
    network = Network(Linear(), nn.Linear(3, 2, bias=False))
    with torch.no_grad():
        network.get_parameter("head.weight").copy_(torch.tensor([[0.0, 0.0, 0.0], weight]))
    return Model(network, stream())


def bernoulli_kl(p: Tensor, q: Tensor) -> Tensor:
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_consistency_of_linear_model_matches_closed_form(epsilon: float) -> None:
    """After one power iteration the direction is +-w / |w|; the gradient takes direction and target for constants."""
    weight, bags = torch.tensor([1.0, -2.0, 0.5]), some_bags()
    method, model = LLPVAT(_VATParams(epsilon=epsilon)), linear_model(weight.tolist())
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


def test_classes_are_sampled_by_proportions() -> None:
    bags = make_bags(
        no_features(2, 20_000), torch.ones(2, 20_000, dtype=torch.bool), [[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]]
    )
    drawn = _drawn_classes(bags, stream())
    assert drawn.sum(dim=-1).unique().tolist() == [1.0]
    assert torch.allclose(drawn.mean(dim=1), bags.proportions, atol=0.01)


@pytest.mark.parametrize(
    ("phase", "moves"),
    [
        ("reconstruct", {"encoder", "head", "style", "decoder"}),
        ("tell", {"class_critic", "style_critic"}),
        ("deceive", {"encoder", "head", "style", "class_critic", "style_critic"}),
    ],
)
def test_critics_learn_between_turns_of_the_coder(phase: str, moves: set[str]) -> None:
    task, bags = toy_task(0), some_bags()
    method = LLPAAE(_LLPAAEParams(hidden=8))
    network = method.build(mlp(task.schema), task.schema)
    loss = method.loss(Model(network, stream()), bags, moment(phase=phase))
    loss.backward()
    named = network.named_parameters()
    assert moves == {name.partition(".")[0] for name, each in named if each.grad is not None and each.grad.any()}
    assert {prefix.rstrip(".") for each in method.phases if each.name == phase for prefix in each.modules} <= moves
    reconstruct, tell, deceive = LLPAAE(_LLPAAEParams(adversarial=0.3)).phases
    assert (reconstruct.name, tell.name, deceive.name) == ("reconstruct", "tell", "deceive")
    assert set(tell.modules) == {"class_critic.", "style_critic."}
    assert set(deceive.modules) == {*reconstruct.modules} - {"decoder."}
    assert [phase.rate for phase in (reconstruct, tell, deceive)] == [1, 1, 0.3]


@pytest.mark.parametrize(
    ("declared", "options", "known"),
    [
        (MixBag, {"probability": 0.0}, (True, True)),
        (MixBag, {"probability": 1.0}, (True, False)),  # a suppressed partner is not mixed in
        (MixBag, {"probability": 1.0}, (False, True)),
        (ROT, {"stages": "joint", "alpha": 1.0}, (True, True)),
        (AHIL, {"weight": 0.0}, (True, True)),
        (LLPVAT, {"weight": 0.0}, (True, True)),
        (TabLLPSelf, {"weight": 0.0}, (True, True)),
    ],
)
def test_method_without_its_term_is_dllp(declared: Any, options: dict[str, Any], known: tuple[bool, bool]) -> None:
    bags = some_bags(unequal=True)._replace(known=torch.tensor(known))
    method = declared(declared.Params(hidden=8, **options))
    network = method.build(small_encoder(), SCHEMA)
    found = method.loss(Model(network, stream()), bags, moment(method.stages[-1].name))
    assert torch.allclose(found, proportion_loss(Model(network, stream()).log_proba(bags), bags), atol=1e-5)

"""LLP-VAT, SELF-LLP, LLP-Co, SIM-LLP and LLP-AAE: their terms by hand, and what they keep from stage to stage."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small import make_bags, mlp, moment, no_features, some_bags, stream, together
from torch import Tensor, nn

from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.blocks.transport import transported
from llpbench.core.bags import Rows
from llpbench.core.model import Encoder, Encoding, Model, Network, Random
from llpbench.data.toy import toy_task
from llpbench.methods.llp_aae import LLPAAE, _drawn_classes, _LLPAAEParams
from llpbench.methods.llp_co import CODES, _swapped_loss
from llpbench.methods.llp_vat import LLPVAT, _VATParams
from llpbench.methods.self_llp import TRANSFORMATIONS, SelfLLP, _SelfLLPParams
from llpbench.methods.sim_llp import SimLLP, _similarity_loss, _SimLLPParams


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


def test_task_matrices_are_orthogonal_and_first_is_identity() -> None:
    task, bags, method = toy_task(0), some_bags(unequal=True), SelfLLP(_SelfLLPParams(hidden=8))
    network = method.build(mlp(task), task.schema)
    rotations = network.rotations
    assert len(rotations.matrices) == TRANSFORMATIONS - 1
    for matrix in rotations.matrices:
        assert torch.allclose(matrix @ matrix.T, torch.eye(len(matrix)), atol=1e-5)
    flat = torch.randn(3, len(rotations.matrices[0]))
    turned = rotations.turned(flat, torch.tensor([0, 1, 3]))
    assert torch.equal(turned[0], flat[0])
    assert torch.allclose(turned[1], flat[1] @ rotations.matrices[0], atol=1e-6)
    assert torch.allclose(turned[2], flat[2] @ rotations.matrices[2], atol=1e-6)
    for parameter in rotations.head[-1].parameters():
        torch.nn.init.zeros_(parameter)
    assert float(method.task(Model(network, stream()), bags).detach()) == pytest.approx(math.log(4), abs=1e-5)


def test_self_llp_without_terms_is_dllp_and_teacher_starts_as_student() -> None:
    task, bags = toy_task(0), some_bags()
    late = moment(step=90.0)
    losses = []
    for weight in (0.0, 5.0):
        torch.manual_seed(0)
        method = SelfLLP(_SelfLLPParams(hidden=8, task_weight=0.0, teacher_weight=weight, dropout=0.0))
        network: Any = method.build(mlp(task), task.schema)
        network.encoder.dropout = network.teacher.encoder.dropout = 0.0
        losses.append(method.loss(Model(network, stream()), bags, late))
        expected = proportion_loss(Model(network, stream()).log_proba(bags), bags)
    assert torch.allclose(losses[0], expected)
    assert torch.allclose(losses[1], expected)
    with torch.no_grad():
        network.teacher.head[-1].bias.add_(torch.tensor([1.0, -1.0]))
    moved = method.loss(Model(network, stream()), bags, late)
    own, other = Model(network).log_proba(bags).exp(), Model(network.teacher).log_proba(bags).exp()
    distance = masked_mean((own - other).square().sum(dim=-1), bags.mask)
    assert torch.allclose(moved, expected + 5.0 * distance, atol=1e-5)


def test_codes_match_proportions() -> None:
    bags = make_bags(no_features(1, 4), torch.ones(1, 4, dtype=torch.bool), [[0.25, 0.75]])
    nothing = torch.zeros(1, 4, 2)
    assert torch.allclose(transported(nothing, bags, CODES, 3), torch.tensor([0.25, 0.75]).expand(1, 4, 2))
    assert float(_swapped_loss(nothing, nothing, bags)) == pytest.approx(math.log(2), abs=1e-5)
    torch.manual_seed(0)
    bags = make_bags(no_features(1, 50), torch.ones(1, 50, dtype=torch.bool), [[0.3, 0.5, 0.2]])
    codes = transported(torch.randn(1, 50, 3).tanh() / 4, bags, CODES, 50)
    assert torch.allclose(codes.mean(dim=1), bags.proportions, atol=1e-3)


def test_similarity_penalises_different_predictions_of_similar_rows() -> None:
    proba = torch.tensor([[0.1, 0.9], [0.9, 0.1]])
    one_class = _similarity_loss(torch.zeros(2, 3), proba[:, 1:], torch.tensor([True, True]))
    assert float(one_class) == pytest.approx(0.32)
    far = _similarity_loss(torch.tensor([[0.0], [1.0]]), proba, torch.tensor([True, True]))
    assert float(far) == pytest.approx(0.64 * math.exp(-1))
    assert float(_similarity_loss(torch.zeros(2, 3), proba, torch.tensor([True, False]))) == 0.0


def test_first_stage_encoder_stays_frozen() -> None:
    method = SimLLP(_SimLLPParams(hidden=8, learning_rate=0.01))
    population = together(method, {0: toy_task(0)}, epochs=2)
    start = population.stack.theta.clone()
    (outcome,) = population.train()
    kept, own = population.stack.columns(["earlier."]), population.stack.columns(["encoder."])
    weights = outcome.selected["l1"].weights
    assert not torch.equal(weights[kept], start[0, kept])
    assert not torch.equal(weights[kept], weights[own])
    assert float(population.stack.template.get_buffer("earlier.scale")) != 1.0


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
def test_phases_alternate_as_declared(phase: str, moves: set[str]) -> None:
    task, bags = toy_task(0), some_bags()
    method = LLPAAE(_LLPAAEParams(hidden=8))
    network = method.build(mlp(task), task.schema)
    loss = method.loss(Model(network, stream()), bags, moment(phase=phase))
    loss.backward()
    named = network.named_parameters()
    assert moves == {name.partition(".")[0] for name, each in named if each.grad is not None and each.grad.any()}
    assert {prefix.rstrip(".") for each in method.phases if each.name == phase for prefix in each.modules} <= moves

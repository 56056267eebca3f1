"""LLP-VAT, SELF-LLP, LLP-Co, SIM-LLP and LLP-AAE: their terms by hand, and what they keep from stage to stage."""

from __future__ import annotations

import pytest
import torch
from small import make_bags, mlp, moment, no_features, some_bags, stream, toy_task
from torch import Tensor, nn

from llpbench.core.bags import Rows
from llpbench.core.model import Encoder, Encoding, Model, Network, Random
from llpbench.methods.llp_aae import LLPAAE, _drawn_classes, _LLPAAEParams
from llpbench.methods.llp_vat import LLPVAT, _VATParams


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


def test_critics_learn_between_turns_of_the_coder() -> None:
    reconstruct, tell, deceive = LLPAAE(_LLPAAEParams(adversarial=0.3)).phases
    assert (reconstruct.name, tell.name, deceive.name) == ("reconstruct", "tell", "deceive")
    assert set(tell.modules) == {"class_critic.", "style_critic."}
    assert set(deceive.modules) == {*reconstruct.modules} - {"decoder."}
    assert [phase.rate for phase in (reconstruct, tell, deceive)] == [1, 1, 0.3]

"""LLP-AAE: an adversarial autoencoder whose codes are a class and a style.

After Wang, Zhang et al. 2023: an encoder gives class probabilities y and a style s of eight numbers, a decoder
reconstructs the row from (y, s), one critic tells y from one-hot draws of the bag's proportions, another s from a
normal distribution, and y meets the proportions of bags. Three turns a step: reconstruct and classify, tell, deceive.

A small version, written to complete a comparison: neither code nor results on tables were available, so that widths,
weights and the kind of adversarial loss (cross-entropy) are ours, and its numbers say little of the paper's method.
Expect what `llp-gan` shows: unstable, and behind DLLP on many tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.blocks.pretraining import Decoder
from llpbench.core.bags import Bags, Schema
from llpbench.core.method import Method, MethodParams, Now, Phase
from llpbench.core.model import MLP, Encoder, Encoding, Model, Network, Random
from llpbench.core.ranges import AtLeast, Choice, LogUniform
from llpbench.core.registry import register_method

STYLE = 8
"""numbers in a style"""


@dataclass(frozen=True)
class LLPAAEParams(MethodParams):
    """Hyperparameters of the autoencoder and its critics."""

    reconstruction: Annotated[float, LogUniform(0.01, 10.0), AtLeast(0.0)] = 0.1
    """weight of reconstructed rows beside the proportion loss"""
    adversarial: Annotated[float, LogUniform(0.01, 1.0), AtLeast(0.0)] = 0.1
    """factor of the learning rate with which critics are deceived"""
    number_weight: Annotated[float, Choice(1.0, 10.0)] = 1.0
    """of the squared error of reconstructed numbers"""


class Code(Encoder):
    """What the decoder takes for an encoder: a class and a style."""

    contextual = False

    def __init__(self, classes: int, token_dim: int) -> None:
        super().__init__()
        self.dim, self.token_dim = classes + STYLE, token_dim


@register_method("llp-aae", reference="after Wang et al. 2023", extra=True)
class LLPAAE(Method):
    """An adversarial autoencoder with codes of class and style, and the proportion loss."""

    Params = LLPAAEParams
    params: LLPAAEParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        self.phases = (
            Phase("reconstruct", ("encoder.", "head.", "style.", "decoder.")),
            Phase("tell", ("class_critic.", "style_critic.")),
            Phase("deceive", ("encoder.", "head.", "style."), rate=float(self.params.adversarial)),
        )

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """The usual network, a head of styles, a decoder of codes, and two critics."""
        return (
            super()
            .build(encoder, schema)
            .add(
                style=nn.Linear(encoder.dim, STYLE),
                decoder=Decoder(Code(schema.classes, encoder.token_dim), schema),
                class_critic=MLP(schema.classes, self.hidden, 1),
                style_critic=MLP(STYLE, self.hidden, 1),
            )
        )

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """The loss of the player whose turn it is."""
        assert model.random is not None
        network, z = model.network, model.encode(bags).z
        log_proba, style = model.classify(z), network.style(z).float()
        if now.phase == "reconstruct":
            code = torch.cat([log_proba.exp(), style], dim=-1)
            rows = network.decoder(Encoding(code, code.unsqueeze(-2)), bags.rows, bags.mask, self.params.number_weight)
            loss: Tensor = proportion_loss(log_proba, bags) + self.params.reconstruction * rows
            return loss
        counted = bags.mask & bags.known.unsqueeze(-1)
        critics = ((network.class_critic, log_proba.exp(), counted), (network.style_critic, style, bags.mask))
        if now.phase == "deceive":
            fooled = [masked_mean(softplus(-critic(own).squeeze(-1)), mask) for critic, own, mask in critics]
            return torch.stack(fooled).sum()
        real = (drawn_classes(bags, model.random), model.random.normal(*style.shape))
        told = [
            masked_mean(softplus(-critic(true).squeeze(-1)) + softplus(critic(own.detach()).squeeze(-1)), mask)
            for (critic, own, mask), true in zip(critics, real, strict=True)
        ]
        return torch.stack(told).sum()


def drawn_classes(bags: Bags, random: Random) -> Tensor:
    """[bags, size, classes] one-hot classes drawn from the proportions of each row's bag."""
    drawn = random.uniform(*bags.mask.shape, 1)
    upper = bags.proportions.cumsum(dim=-1).unsqueeze(-2)
    last = torch.full_like(upper[..., :1], 2.0)
    upper = torch.cat([upper[..., :-1], last], dim=-1)
    lower = torch.cat([torch.zeros_like(last), upper[..., :-1]], dim=-1)
    return ((drawn >= lower) & (drawn < upper)).float()

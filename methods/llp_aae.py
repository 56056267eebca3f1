"""LLP-AAE: an adversarial autoencoder that codes a row as a class and a style.

    L = L_bag + reconstruction · ‖ x − decoder(f(x), style) ‖²,  f(x) and style deceive two critics
    style: eight numbers;  critics: networks that separate f(x) and style from random draws of both

After Wang, Zhang et al. 2023:

- An encoder predicts class probabilities y and a style s of eight numbers. A decoder reconstructs the row from (y, s).
- One critic distinguishes y from one-hot draws from the bag's proportions, another s from a normal distribution.
- y also has the proportion loss.
- A step has three turns: reconstruct and classify, train the critics, deceive the critics.

This is a small version, written to complete a comparison. Neither code nor results on tables were available. Widths,
weights and the adversarial loss (cross-entropy) are choices of this benchmark, so results say little about the paper's
method. Expect it to behave like `llp-gan`: unstable, and worse than DLLP on many tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus

from llpbench import Bags, Method, MethodParams, Now, Phase, Schema, losses, register_method
from llpbench.blocks.pretraining import Decoder
from llpbench.core.model import MLP, Encoder, Encoding, Model, Network, Random
from llpbench.core.ranges import AtLeast, Choice, LogUniform

STYLE = 8
"""length of a style"""


@dataclass(frozen=True)
class _LLPAAEParams(MethodParams):
    """Hyperparameters of the autoencoder and its critics."""

    reconstruction: Annotated[float, LogUniform(0.01, 10.0), AtLeast(0.0)] = 0.1
    """weight of the reconstruction; the proportion loss has weight 1"""
    adversarial: Annotated[float, LogUniform(0.01, 1.0), AtLeast(0.0)] = 0.1
    """factor on the learning rate in the turn that deceives the critics"""
    number_weight: Annotated[float, Choice(1.0, 10.0)] = 1.0
    """weight of the squared error of reconstructed numbers"""


class _Code(Encoder):
    """The decoder's input (a class and a style), with the interface of an encoder."""

    contextual = False

    def __init__(self, classes: int, token_dim: int) -> None:
        super().__init__()
        self.dim, self.token_dim = classes + STYLE, token_dim


@register_method("llp-aae", version=1, reference="after Wang et al. 2023", extra=True)
class LLPAAE(Method):
    """Adversarial autoencoder that codes a row as class and style, with the proportion loss."""

    Params = _LLPAAEParams
    params: _LLPAAEParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        self.phases = (
            Phase("reconstruct", ("encoder.", "head.", "style.", "decoder.")),
            Phase("tell", ("class_critic.", "style_critic.")),
            Phase("deceive", ("encoder.", "head.", "style."), rate=float(self.params.adversarial)),
        )

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with a style head, a decoder and two critics."""
        return (
            super()
            .build(encoder, schema)
            .add(
                style=nn.Linear(encoder.dim, STYLE),
                decoder=Decoder(_Code(schema.classes, encoder.token_dim), schema),
                class_critic=MLP(schema.classes, self.hidden, 1),
                style_critic=MLP(STYLE, self.hidden, 1),
            )
        )

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss of the current player."""
        assert model.random is not None
        network, z = model.network, model.encode(bags).z
        log_proba, style = model.classify(z), network.style(z).float()
        if now.phase == "reconstruct":
            code = torch.cat([log_proba.exp(), style], dim=-1)
            rows = network.decoder(Encoding(code, code.unsqueeze(-2)), bags.rows, bags.mask, self.params.number_weight)
            return losses.proportion_loss(log_proba, bags) + self.params.reconstruction * rows
        counted = bags.mask & bags.known.unsqueeze(-1)
        critics = ((network.class_critic, log_proba.exp(), counted), (network.style_critic, style, bags.mask))
        if now.phase == "deceive":
            fooled = [losses.masked_mean(softplus(-critic(own).squeeze(-1)), mask) for critic, own, mask in critics]
            return torch.stack(fooled).sum()
        real = (_drawn_classes(bags, model.random), model.random.normal(*style.shape))
        told = [
            losses.masked_mean(softplus(-critic(true).squeeze(-1)) + softplus(critic(own.detach()).squeeze(-1)), mask)
            for (critic, own, mask), true in zip(critics, real, strict=True)
        ]
        return torch.stack(told).sum()


def _drawn_classes(bags: Bags, random: Random) -> Tensor:
    """Return one-hot classes [bags, size, classes] drawn from the proportions of each row's bag."""
    upper = bags.proportions.cumsum(dim=-1).unsqueeze(-2)
    classes = (random.uniform(*bags.mask.shape, 1) >= upper[..., :-1]).sum(dim=-1)
    return one_hot(classes, upper.shape[-1]).float()

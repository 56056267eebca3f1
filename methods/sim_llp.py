"""SIM-LLP: train on proportions, and predict the same for similar rows.

    L = similarity · meanᵢⱼ exp(−‖φᵢ − φⱼ‖²) ‖ f(xᵢ) − f(xⱼ) ‖² + bag_weight · meanₖ ‖ rₖ ‖²
    φᵢ: row vector after DLLP with the square loss, scaled

Kotzias, Denil, de Freitas & Smyth 2015, as in LLP-Bench. The first stage is DLLP with the square loss. The second has
L = mean_ij exp(-|phi_i - phi_j|^2) |P_i - P_j|^2 + bag_weight * mean_k |r_k|^2. Pairs are formed of 400 random rows of
a step. r_k is the residual of a bag, phi are the row vectors after the first stage. Differences from LLP-Bench's code:

- phi is divided by the root of its width, by its standard deviation and by `bandwidth`. Otherwise nearly all weights
  are 0.
- Predictions are compared directly. In LLP-Bench they pass a sigmoid once more.
- The second stage continues from the first stage's weights instead of new ones.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from llpbench import Bags, Member, Method, MethodParams, Now, Phase, Schema, Stage, losses, register_method
from llpbench.blocks.views import at, some_rows
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import AtLeast, Choice, LogUniform

MOST_ROWS = 400
"""largest number of rows of a step that are compared with each other"""


@dataclass(frozen=True)
class _SimLLPParams(MethodParams):
    """Hyperparameters of the second stage."""

    similarity: Annotated[float, LogUniform(0.1, 10.0), AtLeast(0.0)] = 1.0
    """weight of the differences between predictions for similar rows"""
    bag_weight: Annotated[float, LogUniform(0.5, 5.0)] = 2.0
    """weight of the square loss of bags"""
    bandwidth: Annotated[float, Choice(0.3, 1.0, 3.0)] = 1.0
    """distance at which the weight of a pair is 1/e, in standard deviations (root mean square over coordinates)"""


class _Earlier(nn.Module):
    """The encoder after the first stage, and the scale of its row vectors."""

    scale: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = deepcopy(encoder)
        self.register_buffer("scale", torch.tensor(1.0))


@register_method("sim-llp", version=1, reference="Kotzias et al. 2015", extra=True)
class SimLLP(Method):
    """Square loss of bags, and similar predictions for similar rows."""

    Params = _SimLLPParams
    params: _SimLLPParams
    stages = (Stage("proportions"), Stage("similarity"))
    phases = (Phase(modules=("encoder.", "head.")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with a copy of its encoder for the first stage's weights."""
        network = super().build(encoder, schema)
        return network.add(earlier=_Earlier(network.encoder))

    def prepare(self, member: Member, now: Now) -> None:
        """Copy the encoder and measure its row vectors, at the start of the second stage."""
        if now.stage == "proportions":
            return
        earlier: _Earlier = member.network.earlier
        earlier.encoder.load_state_dict(member.network.encoder.state_dict())
        z = member.encode()
        earlier.scale.fill_(max(float(z.std(axis=0).mean()) * z.shape[1] ** 0.5, 1e-6))

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the square loss of bags; in the second stage, also the loss of similar rows."""
        log_proba = model.log_proba(bags)
        of_bags = losses.masked_mean(losses.BagMeans.residuals(log_proba, bags).means.square().sum(dim=-1), bags.known)
        if now.stage == "proportions":
            return of_bags
        assert model.random is not None
        earlier: _Earlier = model.network.earlier
        with torch.no_grad():
            phi = earlier.encoder(bags.rows, bags.mask, None).z / (earlier.scale * self.params.bandwidth)
        every = (phi.float().flatten(0, 1), log_proba.exp().flatten(0, 1), bags.mask.flatten())
        chosen = some_rows(every[-1][None], model.random, MOST_ROWS)
        unlike = _similarity_loss(*(at(values[None], chosen)[0] for values in every))
        return self.params.similarity * unlike + self.params.bag_weight * of_bags


def _similarity_loss(phi: Tensor, proba: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over all pairs (i, j) of rows, including i = j, of exp(-|phi_i - phi_j|^2) |P_i - P_j|^2.

    `phi` [rows, dim], `proba` [rows, classes], `mask` [rows].
    """
    near = (-torch.cdist(phi, phi).square()).exp()  # without a tensor of all differences [rows, rows, dim]
    apart = (proba.unsqueeze(0) - proba.unsqueeze(1)).square().sum(dim=-1)
    return losses.masked_mean(near * apart, mask.unsqueeze(0) & mask.unsqueeze(1))

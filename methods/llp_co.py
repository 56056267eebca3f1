"""LLP-Co: prototypes of classes, and codes that match each bag's proportions by transport.

La Rosa & Oliveira 2022, after SwAV (Caron et al. 2020). There is one prototype per class. Row vectors z and prototypes
have length 1, with s = z V'. The codes Q of a view are the entropic transport of s / 0.05 to the counts of the bag, in
three rounds and without gradient. Each view predicts the codes of the other:

    L = -1/2 mean_i sum_c [Q1 log softmax(s2 / 0.1) + Q2 log softmax(s1 / 0.1)]

The prediction is softmax(s / 0.1). No code of the paper was found. Differences from the paper:

- DLLP trains first. Prototypes start as the mean vectors of its predicted classes, minus their common mean. Otherwise
  only counts would match prototypes to classes, and counts hardly differ.
- Views are two passes, the second with mixed features (`blocks/views.py`): tables have no crops.
- `bag_weight` adds the proportion loss of the predictions. The published method has none, so only codes link prototypes
  to classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.blocks.transport import transported
from llpbench.blocks.views import mixed_view
from llpbench.core.bags import Bags, Schema
from llpbench.core.method import Member, Method, MethodParams, Now, Phase, Stage
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Choice, Uniform
from llpbench.core.registry import register_method

CODES, TEMPERATURE, ROUNDS = 0.05, 0.1, 3
"""entropy of the codes, temperature of predictions and rounds of transport, as in SwAV"""

NEARLY_NONE = 1e-6
"""share of random vectors in the first prototypes, for means that are all equal and have no direction"""


@dataclass(frozen=True)
class LLPCoParams(MethodParams):
    """Hyperparameters of views and losses."""

    view: Annotated[str, Choice("mixed", "dropout")] = "mixed"
    """second view: with mixed features, or only with different dropout"""
    mixup: Annotated[float, Uniform(0.3, 1.0)] = 0.8
    """share of the row itself in the embeddings of a mixed view"""
    bag_weight: Annotated[float, Choice(0.0, 0.1, 1.0)] = 0.0
    """weight of the proportion loss beside the codes"""


class Prototypes(nn.Module):
    """One vector per class, and whether it predicts yet: a parameter, since buffers are not saved with weights."""

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(classes, dim))
        self.active = nn.Parameter(torch.tensor(0.0))

    def forward(self, z: Tensor) -> Tensor:
        """[..., classes] cosines of row vectors [..., dim] and prototypes."""
        return F.normalize(z.float(), dim=-1) @ F.normalize(self.vectors.float(), dim=-1).T


@register_method("llp-co", reference="La Rosa & Oliveira 2022", extra=True)
class LLPCo(Method):
    """Views that predict each other's transport to proportions."""

    Params = LLPCoParams
    params: LLPCoParams
    stages = (Stage("proportions"), Stage("prototypes"))
    phases = (Phase(modules=("encoder.", "head.", "prototypes.vectors")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with prototypes. Its head serves the first stage only."""
        return super().build(encoder, schema).add(prototypes=Prototypes(schema.classes, encoder.dim))

    def prepare(self, member: Member, now: Now) -> None:
        """Set prototypes to the mean vectors of predicted classes, at the start of the second stage."""
        if now.stage == "proportions":
            return
        prototypes: Prototypes = member.network.prototypes
        device = prototypes.vectors.device
        z, proba = (torch.from_numpy(made).to(device) for made in (member.encode(), member.proba()))
        with torch.no_grad():
            means = proba.T @ F.normalize(z, dim=-1) / proba.sum(dim=0).clamp(min=1e-6)[:, None]
            apart = means - means.mean(dim=0)
            prototypes.vectors.copy_(apart + NEARLY_NONE * prototypes.vectors)
            prototypes.active.fill_(1.0)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss; in the second stage, the loss of codes predicted from the other view."""
        if now.stage == "proportions":
            return proportion_loss(model.log_proba(bags), bags)
        prototypes = model.network.prototypes
        mixed = self.params.view == "mixed"
        other = mixed_view(model, bags, 0.1, self.params.mixup) if mixed else model.encode(bags)
        first, second = prototypes(model.encode(bags).z), prototypes(other.z)
        loss = swapped_loss(first, second, bags)
        if self.params.bag_weight:
            loss = loss + self.params.bag_weight * proportion_loss(predicted(first), bags)
        return loss

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return log softmax(s / 0.1), or the head's prediction in the first stage."""
        z = model.encode(bags).z
        prototypes: Prototypes = model.network.prototypes
        return torch.where(prototypes.active > 0, predicted(prototypes(z)), model.classify(z))


def predicted(cosines: Tensor) -> Tensor:
    """[..., classes] log predictions."""
    return (cosines / TEMPERATURE).log_softmax(dim=-1)


def swapped_loss(first: Tensor, second: Tensor, bags: Bags) -> Tensor:
    """Mean over known bags of the mean over rows, from the cosines of two views [bags, size, classes]."""
    each = torch.zeros_like(bags.mask, dtype=first.dtype)
    for one, other in ((first, second), (second, first)):
        codes = transported(one.detach(), bags, CODES, ROUNDS)
        each = each - (codes * predicted(other)).sum(dim=-1) / 2
    return masked_mean(each.masked_fill(~bags.mask, 0.0).sum(dim=-1) / bags.mask.sum(dim=-1), bags.known)

"""LLP-Co: learn one prototype per class, such that rows are assigned to prototypes in the proportions of their bag.

    L = −½ meanᵢ Σ_c [ Q¹ log softmax(s²/0.1) + Q² log softmax(s¹/0.1) ]
    s¹, s²: similarities of two views of row i to the prototypes
    Q¹, Q²: targets near s¹, s² that add up to the counts (optimal transport)

La Rosa & Oliveira 2022, after SwAV (Caron et al. 2020). Row vectors z and prototypes have length 1, and s = z V' are
their cosines. The codes Q of a view are the entropic transport of s / 0.05 to the counts of the bag, in three rounds
and without gradient. Each view predicts the codes of the other, by softmax(s / 0.1). We found no code by the authors.
Differences from the paper:

- DLLP trains first. Prototypes start as the mean vectors of its predicted classes, minus their common mean. Otherwise
  only counts would match prototypes to classes, and counts hardly differ between bags.
- Views are two passes, the second with mixed features (`blocks/views.py`). Tables cannot be cropped.
- `bag_weight` adds the proportion loss of the predictions. The published method has no such loss, so only codes link
  prototypes to classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench import Bags, Member, Method, MethodParams, Now, Phase, Schema, Stage, losses, register_method
from llpbench.blocks.assigning import transported
from llpbench.blocks.views import mixed_view
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Choice, Uniform

CODES, TEMPERATURE, ROUNDS = 0.05, 0.1, 3
"""entropy of the codes, temperature of predictions and rounds of transport, as in SwAV"""

NEARLY_NONE = 1e-6
"""weight of random vectors in the first prototypes, needed if all means are equal and so have no direction"""


@dataclass(frozen=True)
class _LLPCoParams(MethodParams):
    """Hyperparameters of views and losses."""

    mixup: Annotated[float, Uniform(0.3, 1.0)] = 0.8
    """weight of the row's own embeddings in a mixed view"""
    bag_weight: Annotated[float, Choice(0.0, 0.1, 1.0)] = 0.0
    """weight of the proportion loss; the loss of the codes has weight 1"""


class _Prototypes(nn.Module):
    """One vector per class, and a flag whether they predict yet: a parameter, since buffers are not saved."""

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(classes, dim))
        self.active = nn.Parameter(torch.tensor(0.0))

    def forward(self, z: Tensor) -> Tensor:
        """Return the cosines [..., classes] of row vectors [..., dim] and prototypes."""
        return F.normalize(z.float(), dim=-1) @ F.normalize(self.vectors.float(), dim=-1).T


@register_method("llp-co", version=1, reference="La Rosa & Oliveira 2022", extra=True)
class LLPCo(Method):
    """Two views of a row that predict each other's class, matched to the proportions of bags."""

    Params = _LLPCoParams
    params: _LLPCoParams
    stages = (Stage("proportions"), Stage("prototypes"))
    phases = (Phase(modules=("encoder.", "head.", "prototypes.vectors")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with prototypes. Its head serves the first stage only."""
        return super().build(encoder, schema).add(prototypes=_Prototypes(schema.classes, encoder.dim))

    def prepare(self, member: Member, now: Now) -> None:
        """Set prototypes to the mean vectors of predicted classes, at the start of the second stage."""
        if now.stage == "proportions":
            return
        prototypes: _Prototypes = member.network.prototypes
        device = prototypes.vectors.device
        z, proba = (torch.from_numpy(made).to(device) for made in (member.encode(), member.proba()))
        with torch.no_grad():
            means = proba.T @ F.normalize(z, dim=-1) / proba.sum(dim=0).clamp(min=1e-6)[:, None]
            apart = means - means.mean(dim=0)
            prototypes.vectors.copy_(apart + NEARLY_NONE * prototypes.vectors)
            prototypes.active.fill_(1.0)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss; in the second stage, the loss of predicting the other view's codes."""
        if now.stage == "proportions":
            return losses.proportion_loss(model.log_proba(bags), bags)
        prototypes = model.network.prototypes
        other = mixed_view(model, bags, 0.1, self.params.mixup)
        first, second = prototypes(model.encode(bags).z), prototypes(other.z)
        loss = _swapped_loss(first, second, bags)
        if self.params.bag_weight:
            loss = loss + self.params.bag_weight * losses.proportion_loss(_predicted(first), bags)
        return loss

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return log softmax(s / 0.1), or the head's prediction in the first stage."""
        z = model.encode(bags).z
        prototypes: _Prototypes = model.network.prototypes
        return torch.where(prototypes.active > 0, _predicted(prototypes(z)), model.classify(z))


def _predicted(cosines: Tensor) -> Tensor:
    """Return log predictions [..., classes]."""
    return (cosines / TEMPERATURE).log_softmax(dim=-1)


def _swapped_loss(first: Tensor, second: Tensor, bags: Bags) -> Tensor:
    """Return L, averaged over bags with known counts, from the cosines of two views [bags, size, classes]."""
    each = torch.zeros_like(bags.mask, dtype=first.dtype)
    for one, other in ((first, second), (second, first)):
        codes = transported(one.detach(), bags, CODES, ROUNDS)
        each = each - (codes * _predicted(other)).sum(dim=-1) / 2
    return losses.masked_mean(each.masked_fill(~bags.mask, 0.0).sum(dim=-1) / bags.mask.sum(dim=-1), bags.known)
